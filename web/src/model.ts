// SPDX-License-Identifier: Apache-2.0
// What the page draws (Model), and how that is packed into the page (Data). A model has bytes where the data have KiB, and
// seconds since 1970 where the data have milliseconds since the recording began. A value that was not sampled is null.

import * as text from "./text";

export type Values = (number | null)[];
export type Columns = Record<string, Values>;

export interface Fix {
    what: string;
    command: string | null;
    needs: string;
}

export interface Verdict {
    id: string;
    severity: "good" | "info" | "warning" | "critical";
    title: string;
    grows: boolean;
    subject: { pid: number | null; role: string };
    metric: string;
    rate_words: string;
    confidence_words: string;
    confidence: number;
    evidence: string;
    exhausts_in: number | null;
    meaning: string;
    fixes: Fix[];
}

export interface Event {
    seconds: number;
    kind: "born" | "ended" | "oom-kill" | "attempt" | "mark" | "epoch";
    pid: number | null;
    role: string;
    text: string;
    count: number;
}

export interface Recording {
    file: string;
    command: string;
    pid: number | null;
    began: string | null;
    seconds: number;
    interval: number;
    samples: number;
    processes: number;
}

export interface Peaks {
    shm: number | null;
    rss: number | null;
    fds: number | null;
    processes: number | null;
    cgroup_used: number | null;
    memory_available_least: number | null;
    oom_kills: number | null;
    estimated: { pss: number | null };
}

export interface About {
    pid: number;
    ppid: number;
    role: string;
    command: string;
    first: number;
    ended: number | null;
    peaks: { rss: number | null; pss: number | null; uss: number | null; shm: number | null; fds: number | null };
}

export interface Process extends About {
    series: Columns;
}

interface Head {
    version: string;
    recording: Recording;
    verdicts: Verdict[];
    sites: { lines: string[]; notes: string[] } | null; // null: the line that leaks was not looked for
    peaks: Peaks;
    stretch: number; // seconds that two points stand for; 0: every sample is there
    unshown: number; // processes that are part of the sums only
}

export interface Model extends Head {
    began: number;
    times: number[];
    job: Columns;
    sums: Columns;
    processes: Process[];
    events: Event[];
}

// Differences from the last known number; [n]: n unknown, [-n]: n more of the same.
type Packed = (number | [number])[];

export interface Data extends Head {
    began: number;
    times: Packed;
    job: Record<string, Packed>;
    sums: Record<string, Packed>;
    processes: { about: About; series: Record<string, Packed> }[];
    events: Event[];
}

const COUNTS = new Set(["fds", "processes"]);

function unpack(packed: Packed, unit: number): Values {
    const values: Values = [];
    let known = 0;
    for (const item of packed) {
        if (typeof item === "number") {
            known += item;
            values.push(known * unit);
        } else {
            const [n] = item;
            for (let i = 0; i < Math.abs(n); i++) values.push(n > 0 ? null : known * unit);
        }
    }
    return values;
}

function unpackAll(columns: Record<string, Packed>): Columns {
    return Object.fromEntries(
        Object.entries(columns).map(([name, packed]) => [name, unpack(packed, COUNTS.has(name) ? 1 : 1024)]),
    );
}

export function decode(data: Data): Model {
    const began = data.began / 1000;
    return {
        began,
        version: data.version,
        recording: data.recording,
        verdicts: data.verdicts,
        sites: data.sites,
        peaks: data.peaks,
        stretch: data.stretch,
        unshown: data.unshown,
        times: unpack(data.times, 0.001).map((seconds) => began + (seconds ?? 0)),
        job: unpackAll(data.job),
        sums: unpackAll(data.sums),
        processes: data.processes.map(({ about, series }) => ({
            ...about,
            first: began + about.first,
            ended: about.ended === null ? null : began + about.ended,
            series: unpackAll(series),
        })),
        events: data.events.map((event) => ({ ...event, seconds: began + event.seconds })),
    };
}

// --- Live -----------------------------------------------------------------------------------------------------------

// What serve sends after each sample (src/show/page/page-live.c). Values have the units of the packed data; those that were not
// sampled are not there. Processes are described in their first samples only.
export interface Sample {
    seconds: number;
    job: Record<string, number>;
    sums: Record<string, number | null>;
    processes: { pid: number; first: number; role: string; series: Record<string, number>; ppid?: number; command?: string }[];
    events: Event[];
    verdicts?: Verdict[];
}

function raise(before: number | null, value: number | null): number | null {
    return value === null || (before !== null && before > value) ? before : value;
}

// The columns have n values and get one more.
function extend(columns: Columns, values: Record<string, number | null>, n: number): void {
    for (const name of Object.keys(values)) columns[name] ??= new Array<null>(n).fill(null);
    for (const [name, column] of Object.entries(columns)) {
        const value = values[name] ?? null;
        column.push(value === null ? null : value * (COUNTS.has(name) ? 1 : 1024));
    }
}

function meet(model: Model, sampled: Sample["processes"][number], n: number): Process | null {
    if (sampled.command === undefined) return null; // the history left it out
    const about = { pid: sampled.pid, ppid: sampled.ppid ?? 0, role: sampled.role, command: sampled.command };
    const peaks = { rss: null, pss: null, uss: null, shm: null, fds: null };
    const met: Process = { ...about, first: model.began + sampled.first, ended: null, peaks, series: {} };
    extend(met.series, {}, n);
    model.processes.push(met);
    model.recording.processes++;
    return met;
}

function appendProcesses(model: Model, sample: Sample, at: number, n: number): void {
    const running = new Map(model.processes.filter(({ ended }) => ended === null).map((process) => [process.pid, process]));
    const sampled = new Map<Process, Record<string, number>>();
    for (const one of sample.processes) {
        const known = running.get(one.pid);
        const same = known && Math.abs(known.first - model.began - one.first) < 0.01 ? known : meet(model, one, n);
        if (!same) continue;
        same.role = one.role;
        same.command = one.command ?? same.command;
        sampled.set(same, one.series);
    }
    for (const process of model.processes) {
        const values = sampled.get(process);
        extend(process.series, values ?? {}, n);
        if (!values) {
            process.ended ??= at;
            continue;
        }
        const now = (name: string) => process.series[name]?.at(-1) ?? null;
        const parts = [now("anon"), now("file"), now("shmem")];
        const rss = parts.every((part) => part !== null) ? parts.reduce((sum, part) => sum + (part ?? 0), 0) : null;
        const { peaks } = process;
        peaks.rss = raise(peaks.rss, rss);
        for (const name of ["pss", "uss", "shm", "fds"] as const) peaks[name] = raise(peaks[name], now(name));
    }
}

function forget(model: Model, before: number): void {
    const n = model.times.findIndex((at) => at >= before);
    if (n < FORGET_AT_ONCE) return;
    model.times.splice(0, n);
    for (const columns of [model.job, model.sums, ...model.processes.map(({ series }) => series)])
        for (const column of Object.values(columns)) column.splice(0, n);
    const from = model.times[0] ?? 0;
    model.processes = model.processes.filter(({ ended }) => ended === null || ended > from);
    model.events = model.events.filter(({ seconds }) => seconds >= from);
}

const FORGET_AT_ONCE = 30; // samples: a page that moves with each of them costs more

// Adds the sample to the model, which shows the last `keep` seconds.
export function append(model: Model, sample: Sample, keep: number): void {
    const at = model.began + sample.seconds;
    const n = model.times.length;
    if (at <= (model.times[n - 1] ?? -Infinity)) return;
    extend(model.job, sample.job, n);
    extend(model.sums, sample.sums, n);
    appendProcesses(model, sample, at, n);
    model.times.push(at);
    model.events.push(...sample.events.map((event) => ({ ...event, seconds: model.began + event.seconds })));
    if (sample.verdicts) model.verdicts = sample.verdicts;
    const { peaks } = model;
    peaks.shm = raise(peaks.shm, model.job["shm_used"]?.at(-1) ?? null);
    peaks.cgroup_used = raise(peaks.cgroup_used, model.job["group_used"]?.at(-1) ?? null);
    peaks.fds = raise(peaks.fds, model.sums["fds"]?.at(-1) ?? null);
    peaks.processes = raise(peaks.processes, sample.processes.length);
    peaks.estimated.pss = raise(peaks.estimated.pss, model.sums["pss"]?.at(-1) ?? null);
    const available = model.job["memory_available"]?.at(-1) ?? null;
    if (available !== null) peaks.memory_available_least = Math.min(peaks.memory_available_least ?? available, available);
    if (sample.events.length) peaks.oom_kills = (peaks.oom_kills ?? 0) + sample.events.filter(({ kind }) => kind === "oom-kill").length;
    forget(model, at - keep);
}

// The newest known value.
export function latest(values: Values | undefined): number | null {
    for (let i = (values?.length ?? 0) - 1; i >= 0; i--) if (values?.[i] != null) return values[i] ?? null;
    return null;
}

// --- What charts draw -----------------------------------------------------------------------------------------------

// A value that is sampled in turns stands until the next sample, or until the process ends.
export function carry(values: Values | undefined, times: number[], ended: number | null): Values {
    const carried: Values = [];
    let known: number | null = null;
    for (let i = 0; i < times.length; i++) {
        known = values?.[i] ?? known;
        carried.push(ended !== null && (times[i] ?? 0) >= ended ? null : known);
    }
    return carried;
}

export function peak(values: Values | undefined): number | null {
    let most: number | null = null;
    for (const value of values ?? []) if (value !== null && (most === null || value > most)) most = value;
    return most;
}

export function nameOf(process: { pid: number; role: string }): string {
    return text.role(process.role).one(process.pid);
}
