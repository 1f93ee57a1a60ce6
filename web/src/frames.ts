// What each chart shows of a model, for all processes or for one of them.
import type { Frame, Line } from "./chart";
import { bytes, bytesShort, count, share } from "./format";
import type { Event, Model, Process, Values } from "./model";
import { carry, nameOf, peak } from "./model";

export type Subject = "by-process" | "by-kind" | Process;

const NAMED_MOST = 8; // colours that can be told apart
const LIMIT_WORTH_SEEING = 0.25; // a peak below this part of the limit would be a flat line under it

const IN_BYTES = { format: bytes, formatTick: bytesShort, binary: true };

function eventsOf(model: Model, subject: Subject): Event[] {
    if (typeof subject === "string") return model.events;
    return model.events.filter((event) => event.pid === subject.pid || (event.kind !== "born" && event.kind !== "ended"));
}

function largest(processes: Process[], of: (process: Process) => number | null): Process[] {
    return [...processes].sort((a, b) => (of(b) ?? -1) - (of(a) ?? -1)).filter((process) => of(process) !== null);
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

function byProcess(model: Model): Line[] {
    const ranked = largest(model.processes, (process) => process.peaks.pss);
    const named = ranked.slice(0, NAMED_MOST).sort((a, b) => a.first - b.first || a.pid - b.pid);
    const lines: Line[] = named.map((process, i) => ({
        key: `pid-${process.pid}`,
        label: nameOf(process),
        color: `--line-${i + 1}`,
        values: carry(process.series["pss"], model.times, process.ended),
        stacked: true,
        held: true,
    }));
    const rest = model.recording.processes - named.length;
    if (rest > 0)
        lines.push({
            key: "rest",
            label: `${rest} others`,
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

function holders(model: Model): Line[] {
    return largest(model.processes, (process) => process.peaks.shm)
        .filter((process) => process.peaks.shm)
        .slice(0, NAMED_MOST)
        .map((process, i) => ({
            key: `pid-${process.pid}`,
            label: nameOf(process),
            color: `--line-${i + 1}`,
            values: carry(process.series["shm"], model.times, process.ended),
            held: true,
        }));
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
    const lines: Line[] =
        subject === "by-kind"
            ? segmentKinds(model)
            : subject === "by-process"
              ? holders(model)
              : [{ key: "shm", label: `held by ${nameOf(subject)}`, color: "--line-1", values: carry(subject.series["shm"], model.times, subject.ended), held: true }];
    if (used) lines.push({ key: "used", label: "used of /dev/shm", color: "--line-used", values: used });
    if (guard) lines.push({ key: "guard", label: "the guard's segments", color: "--line-uss", values: guard });
    if (budget) lines.push({ key: "budget", label: "the guard's budget", color: "--limit", values: budget, limit: true });
    if (size) lines.push({ key: "limit", label: "size of /dev/shm", color: "--limit", values: size, limit: true });
    const [most, limit] = [peak(used), peak(size)];
    const far = most !== null && limit !== null && most < limit * LIMIT_WORTH_SEEING;
    const holding = subject === "by-kind" ? "Segments that the job holds, by kind (looked at in turns)." : "Segments that each process holds (looked at in turns); one that two of them hold counts for both.";
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
    const ranked = typeof subject === "string" ? largest(model.processes, (process) => process.peaks.fds) : [subject];
    const lines = ranked.slice(0, NAMED_MOST).map(
        (process, i): Line => ({
            key: `pid-${process.pid}`,
            label: nameOf(process),
            color: `--line-${i + 1}`,
            values: carry(process.series["fds"], model.times, process.ended),
        }),
    );
    const more = ranked.length - lines.length;
    return {
        times: model.times,
        events: eventsOf(model, subject),
        format: count,
        formatTick: count,
        binary: false,
        lines,
        note: more > 0 ? `Open descriptors of the ${lines.length} processes that have most; ${more} more have ${count(ranked[lines.length]?.peaks.fds ?? null)} or fewer.` : "Open descriptors.",
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
