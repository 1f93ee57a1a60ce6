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
    peaks: Peaks;
    stretch: number; // seconds that two points stand for; 0: every sample is there
    unshown: number; // processes that are part of the sums only
}

export interface Model extends Head {
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
        version: data.version,
        recording: data.recording,
        verdicts: data.verdicts,
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
