// SPDX-License-Identifier: Apache-2.0
// What the page tells people, but for page.html. Each entry is a whole sentence, heading or label; a count has two forms.
// Sizes, durations and counts come with their units; evidence, meanings and advice come from the program.
import { count } from "./format";
import { _, N_, say } from "./language";

// One of two sentences with {n} in them.
const plural = (n: number, one: string, many: string) => say(_(n === 1 ? one : many), { n: count(n) });

// Of processes of one role, singular and plural.
const ROLES: Record<string, { one: (pid: number) => string; some: (n: number) => string; others: (n: number) => string; group: string }> = {
    trainer: {
        one: (pid) => say(_("trainer {pid}"), { pid }),
        some: (n) => plural(n, N_("{n} trainer"), N_("{n} trainers")),
        others: (n) => plural(n, N_("{n} other trainer"), N_("{n} other trainers")),
        group: _("trainers"),
    },
    worker: {
        one: (pid) => say(_("worker {pid}"), { pid }),
        some: (n) => plural(n, N_("{n} worker"), N_("{n} workers")),
        others: (n) => plural(n, N_("{n} other worker"), N_("{n} other workers")),
        group: _("workers"),
    },
    manager: {
        one: (pid) => say(_("manager {pid}"), { pid }),
        some: (n) => plural(n, N_("{n} manager"), N_("{n} managers")),
        others: (n) => plural(n, N_("{n} other manager"), N_("{n} other managers")),
        group: _("managers"),
    },
};

const OTHER_ROLE = {
    one: (pid: number) => say(_("process {pid}"), { pid }),
    some: (n: number) => plural(n, N_("{n} process"), N_("{n} processes")),
    others: (n: number) => plural(n, N_("{n} other process"), N_("{n} other processes")),
    group: _("others"),
};

export const role = (name: string) => ROLES[name] ?? OTHER_ROLE;

// --- The head and the foot ------------------------------------------------------------------------------------------

export const ALL_TRAINING = _("All training on this machine");
export const recorded = (length: string, from: string, interval: number, samples: number, file: string) =>
    say(_("{length} from {from}, interval {interval} s, samples kept: {samples} · {file}"), { length, from, interval, samples: count(samples), file });
export const pageTitle = (name: string) => say(_("{name} · shmguard report"), { name });
export const thinned = (stretch: string) =>
    say(_("Thinned for this page: of every {stretch} the minimum and the maximum are drawn, so that no peak is lost."), { stretch });
export const NOT_THINNED = _("Every sample is drawn.");
export const inSumsAlone = (n: number) => plural(n, N_("{n} process is part of the sums only."), N_("{n} processes are part of the sums only."));
export const ABOUT_TIMES = _("Times are in the time zone of this computer. This file needs no network.");

// --- Live -----------------------------------------------------------------------------------------------------------

export const LIVE_TITLE = _("live · shmguard");
export const following = (length: string, interval: number) => say(_("The last {length}, interval {interval} s."), { length, interval });
export const ABOUT_TIMES_LIVE = _("Times are in the time zone of this computer. For longer spans of time: shmguard record, then shmguard report.");
export const NOW = _("Now");
export const WHOLE_LIVE = _("Everything");
export const PROCESSES_NOW = _("Processes that run now; USS and held shm are sampled in turns.");
export const CONNECTING = _("Connecting…");
export const CONNECTED = _("● Live");
export const lateSample = (age: string) => say(_("The last sample is {age} old: the machine does not answer."), { age });
export const disconnected = (since: string) => say(_("Connection lost at {since}, trying again. What is shown is from before."), { since });

// --- Several recordings ---------------------------------------------------------------------------------------------

export const MERGED = _("several recordings");
export const nodeName = (name: string, number: number | null) => (number === null ? name : say(_("{name} ({number})"), { name, number }));
export const rankName = (rank: number, node: string) => say(_("rank {rank}, {node}"), { rank, node });
export const isLate = (name: string) => say(_("Late: {name}"), { name });
export const NONE_LATE = _("No rank is late: none waits for batches much longer than the others.");
export const lateWhy = {
    room: _("waits for room"),
    cpu: _("waits for a CPU"),
    disk: _("waits for a disk"),
    work: _("its workers compute"),
    unknown: _("why is not known"),
};
export const SHOW_RECORDING = _("Show its recording below");
export const unshownRecordings = (n: number) =>
    plural(n, N_("{n} recording is not in this page; the rows of their ranks are."), N_("{n} recordings are not in this page; the rows of their ranks are."));
export const rankCount = (n: number) => plural(n, N_("{n} rank"), N_("{n} ranks"));
export const nodeCount = (n: number) => plural(n, N_("{n} node"), N_("{n} nodes"));
export const RANK_HEADS = [_("Rank"), _("Late"), _("Attempt"), _("Time"), _("Per mark"), _("Batches"), _("Room"), _("CPU"), _("Disk"), _("At work"), _("RSS")];
export const NODE_HEADS = [_("Node"), _("Ranks"), _("Least memory available"), _("Control group"), "/dev/shm", _("Guard"), _("Waits"), _("OOM kills")];
export const partOf = (part: string, whole: string) => say(_("{part} of {whole}"), { part, whole });

// --- Verdicts -------------------------------------------------------------------------------------------------------

export const WHOLE_JOB = _("the whole job");
export const andMore = (subject: string, n: number) => say(_("{subject} and {n} more"), { subject, n });
export const confidence = (words: string, value: number) => say(_("{words} ({value})"), { words, value: value.toFixed(2) });
export const grows = (rate: string) => say(_("grows by {rate}"), { rate });
export const exhausts = (time: string) => say(_("limit reached in about {time} (estimated)"), { time });
export const alsoIn = (n: number, pids: string) => say(n === 1 ? _("Also in process {pids}.") : _("Also in processes {pids}."), { pids });
export const withRate = (pid: string, rate: string) => say(_("{pid} ({rate})"), { pid, rate });
export const COMMA = _(", ");
export const FIXES = _("What to do");
export const NEEDS: Record<string, string> = {
    root: _("(needs root)"),
    restart: _("(needs a restart)"),
    admin: _("(needs an administrator)"),
};

// --- Peaks ----------------------------------------------------------------------------------------------------------

export const tiles = {
    memory: { name: _("Memory, all processes"), more: _("PSS, estimated") },
    group: { name: _("Control group"), more: (limit: string, share: string) => say(_("of {limit}, {share}"), { limit, share }) },
    availableNow: { name: _("Memory available") },
    available: { name: _("Least memory available"), more: (total: string) => say(_("of {total}"), { total }) },
    shm: { name: "/dev/shm", more: (size: string, share: string) => say(_("of {limit}, {share}"), { limit: size, share }) },
    descriptors: { name: _("Descriptors"), more: _("all processes") },
    processes: { name: _("Processes"), more: (all: number) => say(_("at a time, {all} in total"), { all: count(all) }) },
    processesNow: { more: _("training, or holding shm") },
    killsNow: { more: _("while this page is shown") },
    kills: { name: _("OOM kills"), more: _("while recording") },
};
export const meter = (name: string, percent: number) => say(_("{name}: {percent}%"), { name, percent });

// --- Charts ---------------------------------------------------------------------------------------------------------

export const charts = { memory: _("Memory"), shm: "/dev/shm", fds: _("Descriptors"), machine: _("Machine and control group") };

export const BY_PROCESS = _("all processes, by process");
export const BY_KIND = _("all processes, by kind");
export const subjectOption = (name: string, size: string) => say(_("{name}, {size}"), { name, size });
export const range = (from: string, to: string, length: string) => say(_("{from} to {to} ({length})"), { from, to, length });

export const LEGEND = _("Lines");
export const AS_TABLE = _("As a table");
export const HEAD_TIME = _("Time");
export const PEAK_OF_ALL = _("Peak of all");
export const TOGETHER = _("together");
export const NOT_MEASURED = _("Nothing was measured here at this time.");
export const peakOf = (value: string) => say(_("peak {value}"), { value });
export const since = (time: string, length: string) => say(_("{time} · {length} in"), { time, length });
export const described = (title: string, lines: string) => say(_("{title}: {lines} The table below has the figures."), { title, lines });
export const describedLine = (label: string, value: string) => say(_("{label}, at most {value}."), { label, value });
export const describedLimit = (label: string, value: string) => say(_("{label}, {value}."), { label, value });

export const lines = {
    anon: _("private (anonymous)"),
    file: _("files"),
    shmem: _("shared memory"),
    uss: _("private (USS, sampled in turns)"),
    used: _("used of /dev/shm"),
    size: _("size of /dev/shm"),
    guard: _("the guard's segments"),
    budget: _("the guard's budget"),
    heldBy: (name: string) => say(_("held by {name}"), { name }),
    highestOf: (processes: string) => say(_("highest of {processes}"), { processes }),
    smaller: (n: number) => plural(n, N_("{n} smaller process"), N_("{n} smaller processes")),
    groupUsed: _("used by the control group"),
    groupFile: _("of that, files that can be dropped"),
    available: _("available on the machine"),
    groupLimit: _("limit of the control group"),
};

export const notes = {
    byProcess: _(
        "Each process with its share of the memory that it shares with others (PSS), so that the areas add up. Estimated: PSS is sampled in turns, and a value stands until the next sample.",
    ),
    byKind: _("All processes together. Pages that several of them share count once for each, so this is more than they take."),
    process: (name: string) =>
        say(
            _(
                "{name}: its resident memory (RSS), by kind. After a fork, private memory includes what the process still shares with its parent; USS does not.",
            ),
            { name },
        ),
    shm: (used: string) => say(_("At most {used} used."), { used }),
    shmOf: (used: string, size: string, share: string) => say(_("At most {used} of {size} ({share}) used."), { used, size, share }),
    segmentsByKind: _("Segments that the job holds, by kind (sampled in turns), including memfds, which do not count in /dev/shm."),
    segmentsByProcess: _("Segments that each process holds (sampled in turns); a segment that two of them hold counts for both."),
    sizeFarAbove: _("The size is far above the rest: switch it on below to see it."),
    fds: _("Open descriptors of each process."),
    group: (used: string, limit: string, share: string) =>
        say(_("The control group used at most {used} of {limit} ({share})."), { used, limit, share }),
    noGroup: _("No control group limits this job."),
    machine: (total: string, least: string) => say(_("The machine has {total}, of which at least {least} was available."), { total, least }),
};

// --- Events and processes -------------------------------------------------------------------------------------------

// What happened n times at about one time, to one process, and to the job.
export const events = {
    born: {
        some: (n: number) => plural(n, N_("{n} process started"), N_("{n} processes started")),
        one: (who: string) => say(_("{who} started"), { who }),
    },
    ended: {
        some: (n: number) => plural(n, N_("{n} process ended"), N_("{n} processes ended")),
        one: (who: string) => say(_("{who} ended"), { who }),
    },
    "oom-kill": {
        some: (n: number) => plural(n, N_("{n} OOM kill"), N_("{n} OOM kills")),
        one: (who: string) => say(_("OOM kill of {who}"), { who }),
        job: _("OOM kill"),
    },
    attempt: { some: (n: number) => plural(n, N_("{n} attempt"), N_("{n} attempts")), job: _("attempt") },
    mark: { some: (n: number) => plural(n, N_("{n} mark"), N_("{n} marks")), job: _("mark") },
    epoch: { some: (n: number) => plural(n, N_("{n} epoch"), N_("{n} epochs")), job: _("epoch") },
};
export const eventKinds = {
    born: _("process started"),
    ended: _("process ended"),
    "oom-kill": _("OOM kill"),
    attempt: _("attempt"),
    mark: _("mark"),
    epoch: _("epoch"),
};
export const withDetail = (what: string, detail: string) => say(_("{what}: {detail}"), { what, detail });
export const EVENT_HEADS = [_("Time"), _("Event"), _("Process"), _("Details")];
export const THE_JOB = _("the job");
export const andOthers = (name: string) => say(_("{name} and others"), { name });
export const eventCount = (n: number) => plural(n, N_("{n} event"), N_("{n} events"));
export const NO_EVENTS = _("No process started or ended, and nothing else happened.");

export const PROCESS_HEADS = [_("Process"), _("Command"), _("Lived"), _("RSS"), _("USS"), _("Held shm"), _("Descriptors")];
export const SHOW_IN_CHARTS = _("Show it in the charts");
export const processCount = (n: number) => plural(n, N_("{n} process"), N_("{n} processes"));
