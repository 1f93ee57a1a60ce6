// What each chart shows of a model, for all processes or for one of them.
import type { Frame, Line } from "./chart";
import { bytes, bytesShort, count, share } from "./format";
import type { Event, Model, Process, Values } from "./model";
import { carry, nameOf, peak } from "./model";

export type Subject = "by-process" | "by-kind" | Process;

const NAMED_MOST = 8; // colours that can be told apart
const TRAINERS_MOST = 3; // named when not all can be
const BLAMED_MOST = 3;
const LIMIT_WORTH_SEEING = 0.25; // a peak below this part of the limit would be a flat line under it

const IN_BYTES = { format: bytes, formatTick: bytesShort, binary: true };

function eventsOf(model: Model, subject: Subject): Event[] {
    if (typeof subject === "string") return model.events;
    return model.events.filter((event) => event.pid === subject.pid || (event.kind !== "born" && event.kind !== "ended"));
}

type Column = "pss" | "shm" | "fds";

interface Rest {
    role: string;
    processes: Process[];
}

// Whom to show one by one: all when they are few, else trainers and those that a verdict is about. The others go by role.
function named(model: Model, column: Column): { each: Process[]; rest: Rest[] } {
    const having = model.processes.filter((process) => process.peaks[column] !== null);
    if (having.length <= NAMED_MOST && model.unshown === 0) return { each: having, rest: [] };
    const largest = [...having].sort((a, b) => (b.peaks[column] ?? 0) - (a.peaks[column] ?? 0));
    const blamed = new Set(model.verdicts.filter(({ id, subject }) => id !== "steady" && id !== "too-short" && subject.role !== "job").map(({ subject }) => subject.pid));
    const each = [
        ...largest.filter(({ role }) => role === "trainer").slice(0, TRAINERS_MOST),
        ...largest.filter(({ role, pid }) => role !== "trainer" && blamed.has(pid)).slice(0, BLAMED_MOST),
    ];
    const rest = ["trainer", "worker", "manager", "other"].map((role) => ({
        role,
        processes: having.filter((process) => process.role === role && !each.includes(process)),
    }));
    return { each, rest: rest.filter(({ processes }) => processes.length > 0) };
}

function many(rest: Rest, each: Process[]): string {
    const other = each.some(({ role }) => role === rest.role) ? "other " : "";
    const noun = rest.role === "other" ? "process" : rest.role;
    return `${rest.processes.length} ${other}${noun}${rest.processes.length === 1 ? "" : noun === "process" ? "es" : "s"}`;
}

function carried(model: Model, process: Process, column: Column): Values {
    return carry(process.series[column], model.times, process.ended);
}

// Values of many processes as one line.
function together(model: Model, processes: Process[], column: Column, join: (a: number, b: number) => number): Values {
    const joined: Values = model.times.map(() => null);
    for (const process of processes)
        carried(model, process, column).forEach((value, i) => {
            const before = joined[i] ?? null;
            if (value !== null) joined[i] = before === null ? value : join(before, value);
        });
    return joined;
}

// One line for each that is named, and for each role the highest of the others.
function highest(model: Model, column: Column): Line[] {
    const { each, rest } = named(model, column);
    const lines = each.map((process): Omit<Line, "color"> => ({ key: `${process.pid} ${process.first}`, label: nameOf(process), values: carried(model, process, column), held: true }));
    const others = rest.map((group): Omit<Line, "color"> => ({
        key: `rest-${group.role}`,
        label: group.processes.length === 1 ? many(group, each) : `highest of ${many(group, each)}`,
        values: together(model, group.processes, column, Math.max),
        held: true,
    }));
    return [...lines, ...others].map((line, i) => ({ ...line, color: `--line-${(i % NAMED_MOST) + 1}` }));
}

function kinds(columns: Record<string, Values>): Line[] {
    const parts: [string, string, string][] = [
        ["anon", "private (anonymous)", "--kind-anon"],
        ["file", "files", "--kind-file"],
        ["shmem", "shared memory", "--kind-shmem"],
    ];
    return parts.flatMap(([key, label, color]) => {
        const values = columns[key];
        return values ? [{ key, label, color, values, stacked: true }] : [];
    });
}

// Shares add up: those that are not named are one area for each role, and what the page does not have of its own another.
function byProcess(model: Model): Line[] {
    const { each, rest } = named(model, "pss");
    const areas: Omit<Line, "color" | "stacked" | "held">[] = [
        ...each.map((process) => ({ key: `${process.pid} ${process.first}`, label: nameOf(process), values: carried(model, process, "pss") })),
        ...rest.map((group) => ({ key: `rest-${group.role}`, label: many(group, each), values: together(model, group.processes, "pss", (a, b) => a + b) })),
    ];
    const lines = areas.map((area, i): Line => ({ ...area, color: `--line-${(i % NAMED_MOST) + 1}`, stacked: true, held: true }));
    if (model.unshown > 0)
        lines.push({
            key: "unshown",
            label: `${model.unshown} smaller ones`,
            color: "--line-rest",
            values: (model.sums["pss"] ?? []).map((sum, i) =>
                sum === null ? null : Math.max(0, lines.reduce((left, line) => left - (line.values[i] ?? 0), sum)),
            ),
            stacked: true,
            held: true,
        });
    return lines;
}

export function memoryFrame(model: Model, subject: Subject): Frame {
    const base = { times: model.times, events: eventsOf(model, subject), ...IN_BYTES };
    if (subject === "by-process")
        return {
            ...base,
            lines: byProcess(model),
            note: "Each process with its share of what it has together with others (PSS), so that it adds up. Estimated: PSS is looked at in turns, and stands until the next look.",
        };
    if (subject === "by-kind")
        return {
            ...base,
            lines: kinds(model.sums),
            note: "All processes together. Pages that several of them have count once for each, so this is more than what they take.",
        };
    const lines = kinds(subject.series);
    const uss = subject.series["uss"];
    if (uss)
        lines.push({ key: "uss", label: "its alone (USS, in turns)", color: "--line-uss", values: carry(uss, model.times, subject.ended), held: true });
    return {
        ...base,
        lines,
        note: `${nameOf(subject)}: what it has in memory (RSS), by kind. After a fork, private memory counts what it still shares with its parent; USS does not.`,
    };
}

function segmentKinds(model: Model): Line[] {
    return Object.entries(model.job)
        .filter(([name]) => name.startsWith("segments_"))
        .map(([name, values], i) => ({
            key: name,
            label: name.slice("segments_".length),
            color: `--line-${(i % NAMED_MOST) + 1}`,
            values: carry(values, model.times, null),
            stacked: true,
            held: true,
        }));
}

export function shmFrame(model: Model, subject: Subject): Frame {
    const used = model.job["shm_used"];
    const size = model.job["shm_size"];
    const guard = model.job["guard_bytes"];
    const budget = model.job["guard_budget"];
    const held: Line[] =
        subject === "by-kind"
            ? segmentKinds(model)
            : subject === "by-process"
              ? highest(model, "shm")
              : [{ key: "shm", label: `held by ${nameOf(subject)}`, color: "--line-1", values: carry(subject.series["shm"], model.times, subject.ended), held: true }];
    const lines: Line[] = used ? [{ key: "used", label: "used of /dev/shm", color: "--line-rest", values: used, filled: true }, ...held] : held;
    if (guard) lines.push({ key: "guard", label: "the guard's segments", color: "--line-uss", values: guard });
    if (budget) lines.push({ key: "budget", label: "the guard's budget", color: "--limit", values: budget, limit: true });
    if (size) lines.push({ key: "limit", label: "size of /dev/shm", color: "--limit", values: size, limit: true });
    const [most, limit] = [peak(used), peak(size)];
    const far = most !== null && limit !== null && most < limit * LIMIT_WORTH_SEEING;
    const holding = subject === "by-kind" ? "Segments that the job holds, memfds among them (those do not count in /dev/shm), by kind (looked at in turns)." : "Segments that each process holds (looked at in turns); one that two of them hold counts for both.";
    return {
        times: model.times,
        events: eventsOf(model, subject),
        ...IN_BYTES,
        lines,
        note: `At most ${bytes(most)}${limit ? ` of ${bytes(limit)} (${share(most, limit)})` : ""} used. ${holding}${far ? " The size is far above: switch it on below to see it." : ""}`,
        ...(far ? { faint: "limit" } : {}),
    };
}

export function fdsFrame(model: Model, subject: Subject): Frame {
    return {
        times: model.times,
        events: eventsOf(model, subject),
        format: count,
        formatTick: count,
        binary: false,
        lines:
            typeof subject === "string"
                ? highest(model, "fds")
                : [{ key: "fds", label: nameOf(subject), color: "--line-1", values: carried(model, subject, "fds"), held: true }],
        note: "Open descriptors of each process.",
    };
}

export function machineFrame(model: Model): Frame {
    const lines: Line[] = [];
    const add = (name: string, label: string, color: string, limit = false) => {
        const values = model.job[name];
        if (values) lines.push({ key: name, label, color, values, limit });
    };
    add("group_used", "used by the control group", "--line-1");
    add("group_file", "of that, files that can be dropped", "--kind-file");
    add("memory_available", "available on the machine", "--line-2");
    add("group_limit", "limit of the control group", "--limit", true);
    const [limit, most] = [peak(model.job["group_limit"]), peak(model.job["group_used"])];
    const total = peak(model.job["memory_total"]);
    return {
        times: model.times,
        events: model.events,
        ...IN_BYTES,
        lines,
        note:
            (limit !== null ? `The control group used at most ${bytes(most)} of ${bytes(limit)} (${share(most, limit)}). ` : "No control group limits this job. ") +
            `The machine has ${bytes(total)}, and at least ${bytes(model.peaks.memory_available_least)} of it was available.`,
    };
}
