// SPDX-License-Identifier: Apache-2.0
// What the page tells people, but for page.html. Each entry is a whole sentence, heading or label; a count has two forms.
// Sizes, durations and counts come with their units; evidence, meanings and advice come from the program.
import { count } from "./format";

const plural = (n: number, one: string, many: string) => `${count(n)} ${n === 1 ? one : many}`;

// Of processes of one role, singular and plural.
const ROLES: Record<string, { one: (pid: number) => string; some: (n: number) => string; others: (n: number) => string; group: string }> = {
    trainer: {
        one: (pid) => `trainer ${pid}`,
        some: (n) => plural(n, "trainer", "trainers"),
        others: (n) => plural(n, "other trainer", "other trainers"),
        group: "trainers",
    },
    worker: {
        one: (pid) => `worker ${pid}`,
        some: (n) => plural(n, "worker", "workers"),
        others: (n) => plural(n, "other worker", "other workers"),
        group: "workers",
    },
    manager: {
        one: (pid) => `manager ${pid}`,
        some: (n) => plural(n, "manager", "managers"),
        others: (n) => plural(n, "other manager", "other managers"),
        group: "managers",
    },
};

const OTHER_ROLE = {
    one: (pid: number) => `process ${pid}`,
    some: (n: number) => plural(n, "process", "processes"),
    others: (n: number) => plural(n, "other process", "other processes"),
    group: "others",
};

export const role = (name: string) => ROLES[name] ?? OTHER_ROLE;

// --- The head and the foot ------------------------------------------------------------------------------------------

export const ALL_TRAINING = "All training on this machine";
export const recorded = (length: string, from: string, interval: number, samples: number, file: string) =>
    `${length} from ${from}, interval ${interval} s, samples kept: ${count(samples)} · ${file}`;
export const pageTitle = (name: string) => `${name} · shmguard report`;
export const thinned = (stretch: string) =>
    `Thinned for this page: of every ${stretch} the minimum and the maximum are drawn, so that no peak is lost.`;
export const NOT_THINNED = "Every sample is drawn.";
export const inSumsAlone = (n: number) => `${plural(n, "process is", "processes are")} part of the sums only.`;
export const ABOUT_TIMES = "Times are in the time zone of this computer. This file needs no network.";

// --- Live -----------------------------------------------------------------------------------------------------------

export const LIVE_TITLE = "live · shmguard";
export const following = (length: string, interval: number) => `The last ${length}, interval ${interval} s.`;
export const ABOUT_TIMES_LIVE = "Times are in the time zone of this computer. For longer spans of time: shmguard record, then shmguard report.";
export const NOW = "Now";
export const WHOLE_LIVE = "Everything";
export const PROCESSES_NOW = "Processes that run now; USS and held shm are sampled in turns.";
export const CONNECTING = "Connecting…";
export const CONNECTED = "● Live";
export const lateSample = (age: string) => `The last sample is ${age} old: the machine does not answer.`;
export const disconnected = (since: string) => `Connection lost at ${since}, trying again. What is shown is from before.`;

// --- Several recordings ---------------------------------------------------------------------------------------------

export const MERGED = "several recordings";
export const nodeName = (name: string, number: number | null) => (number === null ? name : `${name} (${number})`);
export const rankName = (rank: number, node: string) => `rank ${rank}, ${node}`;
export const isLate = (name: string) => `Late: ${name}`;
export const NONE_LATE = "No rank is late: none waits for batches much longer than the others.";
export const lateWhy = {
    room: "waits for room",
    cpu: "waits for a CPU",
    disk: "waits for a disk",
    work: "its workers compute",
    unknown: "why is not known",
};
export const SHOW_RECORDING = "Show its recording below";
export const unshownRecordings = (n: number) => `${plural(n, "recording is", "recordings are")} not in this page; the rows of their ranks are.`;
export const rankCount = (n: number) => plural(n, "rank", "ranks");
export const nodeCount = (n: number) => plural(n, "node", "nodes");
export const RANK_HEADS = ["Rank", "Late", "Attempt", "Time", "Per mark", "Batches", "Room", "CPU", "Disk", "At work", "RSS"];
export const NODE_HEADS = ["Node", "Ranks", "Least memory available", "Control group", "/dev/shm", "Guard", "Waits", "OOM kills"];
export const partOf = (part: string, whole: string) => `${part} of ${whole}`;

// --- Verdicts -------------------------------------------------------------------------------------------------------

export const WHOLE_JOB = "the whole job";
export const andMore = (subject: string, n: number) => `${subject} and ${n} more`;
export const confidence = (words: string, value: number) => `${words} (${value.toFixed(2)})`;
export const grows = (rate: string) => `grows by ${rate}`;
export const exhausts = (time: string) => `limit reached in about ${time} (estimated)`;
export const alsoIn = (n: number, pids: string) => (n === 1 ? `Also in process ${pids}.` : `Also in processes ${pids}.`);
export const withRate = (pid: string, rate: string) => `${pid} (${rate})`;
export const FIXES = "What to do";
export const NEEDS: Record<string, string> = {
    root: "(needs root)",
    restart: "(needs a restart)",
    admin: "(needs an administrator)",
};

// --- Peaks ----------------------------------------------------------------------------------------------------------

export const tiles = {
    memory: { name: "Memory, all processes", more: "PSS, estimated" },
    group: { name: "Control group", more: (limit: string, share: string) => `of ${limit}, ${share}` },
    availableNow: { name: "Memory available" },
    available: { name: "Least memory available", more: (total: string) => `of ${total}` },
    shm: { name: "/dev/shm", more: (size: string, share: string) => `of ${size}, ${share}` },
    descriptors: { name: "Descriptors", more: "all processes" },
    processes: { name: "Processes", more: (all: number) => `at a time, ${count(all)} in total` },
    processesNow: { more: "training, or holding shm" },
    killsNow: { more: "while this page is shown" },
    kills: { name: "OOM kills", more: "while recording" },
};
export const meter = (name: string, percent: number) => `${name}: ${percent}%`;

// --- Charts ---------------------------------------------------------------------------------------------------------

export const charts = { memory: "Memory", shm: "/dev/shm", fds: "Descriptors", machine: "Machine and control group" };

export const BY_PROCESS = "all processes, by process";
export const BY_KIND = "all processes, by kind";
export const subjectOption = (name: string, size: string) => `${name}, ${size}`;
export const range = (from: string, to: string, length: string) => `${from} to ${to} (${length})`;

export const LEGEND = "Lines";
export const AS_TABLE = "As a table";
export const HEAD_TIME = "Time";
export const PEAK_OF_ALL = "Peak of all";
export const TOGETHER = "together";
export const NOT_MEASURED = "Nothing was measured here at this time.";
export const peakOf = (value: string) => `peak ${value}`;
export const since = (time: string, length: string) => `${time} · ${length} in`;
export const described = (title: string, lines: string) => `${title}: ${lines} The table below has the figures.`;
export const describedLine = (label: string, value: string) => `${label}, at most ${value}.`;
export const describedLimit = (label: string, value: string) => `${label}, ${value}.`;

export const lines = {
    anon: "private (anonymous)",
    file: "files",
    shmem: "shared memory",
    uss: "private (USS, sampled in turns)",
    used: "used of /dev/shm",
    size: "size of /dev/shm",
    guard: "the guard's segments",
    budget: "the guard's budget",
    heldBy: (name: string) => `held by ${name}`,
    highestOf: (processes: string) => `highest of ${processes}`,
    smaller: (n: number) => plural(n, "smaller process", "smaller processes"),
    groupUsed: "used by the control group",
    groupFile: "of that, files that can be dropped",
    available: "available on the machine",
    groupLimit: "limit of the control group",
};

export const notes = {
    byProcess:
        "Each process with its share of the memory that it shares with others (PSS), so that the areas add up. Estimated: PSS is sampled in turns, and a value stands until the next sample.",
    byKind: "All processes together. Pages that several of them share count once for each, so this is more than they take.",
    process: (name: string) =>
        `${name}: its resident memory (RSS), by kind. After a fork, private memory includes what the process still shares with its parent; USS does not.`,
    shm: (used: string) => `At most ${used} used.`,
    shmOf: (used: string, size: string, share: string) => `At most ${used} of ${size} (${share}) used.`,
    segmentsByKind: "Segments that the job holds, by kind (sampled in turns), including memfds, which do not count in /dev/shm.",
    segmentsByProcess: "Segments that each process holds (sampled in turns); a segment that two of them hold counts for both.",
    sizeFarAbove: "The size is far above the rest: switch it on below to see it.",
    fds: "Open descriptors of each process.",
    group: (used: string, limit: string, share: string) => `The control group used at most ${used} of ${limit} (${share}).`,
    noGroup: "No control group limits this job.",
    machine: (total: string, least: string) => `The machine has ${total}, of which at least ${least} was available.`,
};

// --- Events and processes -------------------------------------------------------------------------------------------

// What happened n times at about one time, to one process, and to the job.
export const events = {
    born: { some: (n: number) => plural(n, "process started", "processes started"), one: (who: string) => `${who} started` },
    ended: { some: (n: number) => plural(n, "process ended", "processes ended"), one: (who: string) => `${who} ended` },
    "oom-kill": { some: (n: number) => plural(n, "OOM kill", "OOM kills"), one: (who: string) => `OOM kill of ${who}`, job: "OOM kill" },
    attempt: { some: (n: number) => plural(n, "attempt", "attempts"), job: "attempt" },
    mark: { some: (n: number) => plural(n, "mark", "marks"), job: "mark" },
    epoch: { some: (n: number) => plural(n, "epoch", "epochs"), job: "epoch" },
};
export const eventKinds = { born: "process started", ended: "process ended", "oom-kill": "OOM kill", attempt: "attempt", mark: "mark", epoch: "epoch" };
export const withDetail = (what: string, detail: string) => `${what}: ${detail}`;
export const EVENT_HEADS = ["Time", "Event", "Process", "Details"];
export const THE_JOB = "the job";
export const andOthers = (name: string) => `${name} and others`;
export const eventCount = (n: number) => plural(n, "event", "events");
export const NO_EVENTS = "No process started or ended, and nothing else happened.";

export const PROCESS_HEADS = ["Process", "Command", "Lived", "RSS", "USS", "Held shm", "Descriptors"];
export const SHOW_IN_CHARTS = "Show it in the charts";
export const processCount = (n: number) => plural(n, "process", "processes");
