// SPDX-License-Identifier: Apache-2.0
// Which lines each chart draws of a model, for all processes or for one of them.
import type { Frame, Line } from "./chart";
import { bytes, bytesShort, count, share } from "./format";
import type { Event, Model, Process, Values } from "./model";
import { carry, nameOf, peak } from "./model";
import { sentences } from "./language";
import * as text from "./text";

export type Subject = "by-process" | "by-kind" | Process;

const NAMED_MOST = 8; // colours that can be told apart
const TRAINERS_MOST = 3; // shown one by one when not all can be
const BLAMED_MOST = 3;
const LIMIT_WORTH_SEEING = 0.25; // below this part of the limit, a peak would be a flat line under it

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

// Which processes to show one by one: all when they are few, else trainers and those that a verdict is about. The rest goes by role.
function named(model: Model, column: Column): { each: Process[]; rest: Rest[] } {
    const having = model.processes.filter((process) => process.peaks[column] !== null);
    if (having.length <= NAMED_MOST && model.unshown === 0) return { each: having, rest: [] };
    const largest = [...having].sort((a, b) => (b.peaks[column] ?? 0) - (a.peaks[column] ?? 0));
    const blamed = new Set(model.verdicts.filter(({ grows, subject }) => grows && subject.role !== "job").map(({ subject }) => subject.pid));
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
    const words = text.role(rest.role);
    return (each.some(({ role }) => role === rest.role) ? words.others : words.some)(rest.processes.length);
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

// One line per named process, and one per role with the highest value of the rest.
function highest(model: Model, column: Column): Line[] {
    const { each, rest } = named(model, column);
    const lines = each.map((process): Omit<Line, "color"> => ({ key: `${process.pid} ${process.first}`, label: nameOf(process), values: carried(model, process, column), held: true }));
    const others = rest.map((group): Omit<Line, "color"> => ({
        key: `rest-${group.role}`,
        label: group.processes.length === 1 ? many(group, each) : text.lines.highestOf(many(group, each)),
        values: together(model, group.processes, column, Math.max),
        held: true,
    }));
    return [...lines, ...others].map((line, i) => ({ ...line, color: `--line-${(i % NAMED_MOST) + 1}` }));
}

function kinds(columns: Record<string, Values>): Line[] {
    const parts: [string, string, string][] = [
        ["anon", text.lines.anon, "--kind-anon"],
        ["file", text.lines.file, "--kind-file"],
        ["shmem", text.lines.shmem, "--kind-shmem"],
    ];
    return parts.flatMap(([key, label, color]) => {
        const values = columns[key];
        return values ? [{ key, label, color, values, stacked: true }] : [];
    });
}

// Shares add up: the processes that are not named are one area per role, and those that the page has no series of are another.
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
            label: text.lines.smaller(model.unshown),
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
            note: text.notes.byProcess,
        };
    if (subject === "by-kind")
        return {
            ...base,
            lines: kinds(model.sums),
            note: text.notes.byKind,
        };
    const lines = kinds(subject.series);
    const uss = subject.series["uss"];
    if (uss)
        lines.push({ key: "uss", label: text.lines.uss, color: "--line-uss", values: carry(uss, model.times, subject.ended), held: true });
    return {
        ...base,
        lines,
        note: text.notes.process(nameOf(subject)),
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
              : [{ key: "shm", label: text.lines.heldBy(nameOf(subject)), color: "--line-1", values: carry(subject.series["shm"], model.times, subject.ended), held: true }];
    const lines: Line[] = used ? [{ key: "used", label: text.lines.used, color: "--line-rest", values: used, filled: true }, ...held] : held;
    if (guard) lines.push({ key: "guard", label: text.lines.guard, color: "--line-uss", values: guard });
    if (budget) lines.push({ key: "budget", label: text.lines.budget, color: "--limit", values: budget, limit: true });
    if (size) lines.push({ key: "limit", label: text.lines.size, color: "--limit", values: size, limit: true });
    const [most, limit] = [peak(used), peak(size)];
    const far = most !== null && limit !== null && most < limit * LIMIT_WORTH_SEEING;
    const words = [
        limit ? text.notes.shmOf(bytes(most), bytes(limit), share(most, limit)) : text.notes.shm(bytes(most)),
        subject === "by-kind" ? text.notes.segmentsByKind : text.notes.segmentsByProcess,
        ...(far ? [text.notes.sizeFarAbove] : []),
    ];
    return {
        times: model.times,
        events: eventsOf(model, subject),
        ...IN_BYTES,
        lines,
        note: sentences(words),
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
        note: text.notes.fds,
    };
}

export function machineFrame(model: Model): Frame {
    const lines: Line[] = [];
    const add = (name: string, label: string, color: string, limit = false) => {
        const values = model.job[name];
        if (values) lines.push({ key: name, label, color, values, limit });
    };
    add("group_used", text.lines.groupUsed, "--line-1");
    add("group_file", text.lines.groupFile, "--kind-file");
    add("memory_available", text.lines.available, "--line-2");
    add("group_limit", text.lines.groupLimit, "--limit", true);
    const [limit, most] = [peak(model.job["group_limit"]), peak(model.job["group_used"])];
    const total = peak(model.job["memory_total"]);
    return {
        times: model.times,
        events: model.events,
        ...IN_BYTES,
        lines,
        note: sentences([
            limit !== null ? text.notes.group(bytes(most), bytes(limit), share(most, limit)) : text.notes.noGroup,
            text.notes.machine(bytes(total), bytes(model.peaks.memory_available_least)),
        ]),
    };
}
