// The page from its data: decode, then show. What comes later is shown by the same call with a newer model.
import { Chart, Span } from "./chart";
import { byId, make, table } from "./dom";
import { showEvents } from "./events";
import { bytes, clock, count, countOf, duration, share } from "./format";
import { fdsFrame, machineFrame, memoryFrame, shmFrame, type Subject } from "./frames";
import { decode, nameOf, peak, type Data, type Model } from "./model";
import { showVerdicts } from "./verdicts";

const PAPER_WIDTH = 690;

function tile(name: string, value: string, more: string, part: number | null): HTMLElement {
    const meter =
        part === null
            ? null
            : make("meter", { min: "0", max: "1", low: "0.8", high: "0.9", optimum: "0", value: String(part), "aria-label": `${name}: ${Math.round(part * 100)}%` });
    return make("div", { class: "tile" }, make("dt", {}, name), make("dd", {}, make("b", {}, value), make("span", { class: "quiet" }, more), meter));
}

function showFigures(host: HTMLElement, model: Model): void {
    const { peaks, recording, job } = model;
    const limit = peak(job["group_limit"]);
    const shm = peak(job["shm_size"]);
    const total = peak(job["memory_total"]);
    const least = peaks.memory_available_least;
    const partOf = (part: number | null, whole: number | null) => (part !== null && whole ? Math.min(1, part / whole) : null);
    host.replaceChildren(
        tile("Memory, all processes", bytes(peaks.estimated.pss), "PSS, estimated", null),
        limit !== null
            ? tile("Control group", bytes(peaks.cgroup_used), `of ${bytes(limit)}, ${share(peaks.cgroup_used, limit)}`, partOf(peaks.cgroup_used, limit))
            : tile("Least memory available", bytes(least), `of ${bytes(total)}`, least !== null && total ? 1 - least / total : null),
        tile("/dev/shm", bytes(peaks.shm), shm ? `of ${bytes(shm)}, ${share(peaks.shm, shm)}` : "", partOf(peaks.shm, shm)),
        tile("Descriptors", count(peaks.fds), "all processes", null),
        tile("Processes", count(peaks.processes), `at a time, ${count(recording.processes)} in all`, null),
        ...(peaks.oom_kills ? [tile("OOM kills", count(peaks.oom_kills), "while it was recorded", null)] : []),
    );
}

function showHead(model: Model): void {
    const { recording } = model;
    byId("version").textContent = model.version;
    byId("command").textContent = recording.command || "All training on this machine";
    byId("recorded").textContent =
        `${duration(recording.seconds)} from ${clock(model.times[0] ?? 0, true)} on, ` +
        `a look every ${recording.interval} s, ${count(recording.samples)} kept · ${recording.file}`;
    byId("limits").textContent =
        (model.stretch > 0 ? `Thinned for this page: of every ${duration(model.stretch)} the least and the most are drawn, so that no peak is lost. ` : "Every sample is drawn. ") +
        (model.unshown > 0 ? `${countOf(model.unshown, "process is", "processes are")} in the sums alone. ` : "") +
        "Times are those of the clock where you read this. This file needs no network.";
    document.title = `${recording.command ? recording.command.slice(0, 60) : "shmguard"} · shmguard report`;
}

function fillSubjects(select: HTMLSelectElement, model: Model): void {
    const chosen = select.value;
    const option = (value: string, text: string) => make("option", { value }, text);
    const groups = ["trainer", "worker", "manager", "other"].flatMap((role) => {
        const processes = model.processes.filter((process) => process.role === role);
        return processes.length
            ? [make("optgroup", { label: `${role}s` }, ...processes.map((process) => option(`${model.processes.indexOf(process)}`, `${nameOf(process)}, ${bytes(process.peaks.rss)}`)))]
            : [];
    });
    const sums = model.sums["pss"] ? [option("by-process", "all processes, by process"), option("by-kind", "all processes, by kind")] : [option("by-kind", "all processes, by kind")];
    select.replaceChildren(...sums, ...groups);
    if ([...select.options].some(({ value }) => value === chosen)) select.value = chosen;
}

class Page {
    private model: Model | null = null;
    private readonly select = byId<HTMLSelectElement>("subject");
    private readonly span = new Span((from, to, isAll) => this.spanChanged(from, to, isAll));
    private readonly memory = new Chart(byId("memory"), "Memory", this.span);
    private readonly shm = new Chart(byId("shm"), "/dev/shm", this.span);
    private readonly fds = new Chart(byId("fds"), "Descriptors", this.span);
    private readonly machine = new Chart(byId("machine"), "Machine and control group", this.span);
    private readonly charts = [this.memory, this.shm, this.fds, this.machine];

    constructor() {
        const press = (id: string, act: () => void) => byId(id).addEventListener("click", act);
        press("earlier", () => this.span.shift(-0.5));
        press("later", () => this.span.shift(0.5));
        press("closer", () => this.span.zoom(0.5));
        press("farther", () => this.span.zoom(2));
        press("whole", () => this.span.whole());
        this.select.addEventListener("change", () => this.showCharts());
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint());
        matchMedia("print").addEventListener("change", (event) => this.paper(event.matches));
        addEventListener("beforeprint", () => this.paper(true));
        addEventListener("afterprint", () => this.paper(false));
    }

    show(model: Model): void {
        this.model = model;
        showHead(model);
        showVerdicts(byId("verdicts"), model.verdicts);
        showFigures(byId("figures"), model);
        fillSubjects(this.select, model);
        this.span.setAll(model.times[0] ?? 0, model.times.at(-1) ?? 1);
        this.showCharts();
        showEvents(byId("events"), model.events);
        this.showProcesses(model);
    }

    private showCharts(): void {
        if (!this.model) return;
        const value = this.select.value;
        const subject: Subject = value === "by-process" || value === "by-kind" ? value : (this.model.processes[Number(value)] ?? "by-kind");
        this.memory.show(memoryFrame(this.model, subject));
        this.shm.show(shmFrame(this.model, subject));
        this.fds.show(fdsFrame(this.model, subject));
        this.machine.show(machineFrame(this.model));
    }

    private showProcesses(model: Model): void {
        const heads = ["Process", "Command", "Lived", "RSS", "USS", "Held shm", "Descriptors"];
        const end = model.times.at(-1) ?? 0;
        const rows = model.processes.map((process, i) => {
            const button = make("button", { type: "button", class: "link", title: "Show it in the charts" }, nameOf(process));
            button.addEventListener("click", () => {
                this.select.value = String(i);
                this.showCharts();
                byId("charts").scrollIntoView();
            });
            const { rss, uss, shm, fds } = process.peaks;
            return [button, make("code", {}, process.command), duration((process.ended ?? end) - process.first), bytes(rss), bytes(uss), bytes(shm), count(fds)];
        });
        byId("processes").replaceChildren(table(countOf(model.recording.processes, "process", "processes"), heads, rows, 2));
    }

    private spanChanged(from: number, to: number, isAll: boolean): void {
        byId("range").textContent = isAll ? "" : `${clock(from, false)} to ${clock(to, false)} (${duration(to - from)})`;
        byId<HTMLButtonElement>("whole").disabled = isAll;
    }

    private repaint(): void {
        for (const chart of this.charts) chart.repaint();
    }

    // Paper is white and narrow, whatever the screen is.
    private paper(on: boolean): void {
        document.documentElement.toggleAttribute("data-paper", on);
        this.repaint();
        for (const chart of this.charts) chart.resize(on ? PAPER_WIDTH : undefined);
    }
}

new Page().show(decode(JSON.parse(byId("data").textContent ?? "") as Data));
