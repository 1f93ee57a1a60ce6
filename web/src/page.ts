// SPDX-License-Identifier: Apache-2.0
// Decodes the data and shows them. Later data are shown by the same call with a newer model.
import { Chart, Span } from "./chart";
import { byId, make, table } from "./dom";
import { showEvents } from "./events";
import { bytes, clock, count, duration, share } from "./format";
import { fdsFrame, machineFrame, memoryFrame, shmFrame, type Subject } from "./frames";
import { decode, nameOf, peak, type Data, type Model } from "./model";
import * as text from "./text";
import { showVerdicts } from "./verdicts";

const PAPER_WIDTH = 690;

function tile(name: string, value: string, more: string, part: number | null): HTMLElement {
    const meter =
        part === null
            ? null
            : make("meter", { min: "0", max: "1", low: "0.8", high: "0.9", optimum: "0", value: String(part), "aria-label": text.meter(name, Math.round(part * 100)) });
    return make("div", { class: "tile" }, make("dt", {}, name), make("dd", {}, make("b", {}, value), make("span", { class: "quiet" }, more), meter));
}

function showFigures(host: HTMLElement, model: Model): void {
    const { peaks, recording, job } = model;
    const { tiles } = text;
    const limit = peak(job["group_limit"]);
    const shm = peak(job["shm_size"]);
    const total = peak(job["memory_total"]);
    const least = peaks.memory_available_least;
    const partOf = (part: number | null, whole: number | null) => (part !== null && whole ? Math.min(1, part / whole) : null);
    host.replaceChildren(
        tile(tiles.memory.name, bytes(peaks.estimated.pss), tiles.memory.more, null),
        limit !== null
            ? tile(tiles.group.name, bytes(peaks.cgroup_used), tiles.group.more(bytes(limit), share(peaks.cgroup_used, limit)), partOf(peaks.cgroup_used, limit))
            : tile(tiles.available.name, bytes(least), tiles.available.more(bytes(total)), least !== null && total ? 1 - least / total : null),
        tile(tiles.shm.name, bytes(peaks.shm), shm ? tiles.shm.more(bytes(shm), share(peaks.shm, shm)) : "", partOf(peaks.shm, shm)),
        tile(tiles.descriptors.name, count(peaks.fds), tiles.descriptors.more, null),
        tile(tiles.processes.name, count(peaks.processes), tiles.processes.more(recording.processes), null),
        ...(peaks.oom_kills ? [tile(tiles.kills.name, count(peaks.oom_kills), tiles.kills.more, null)] : []),
    );
}

function showHead(model: Model): void {
    const { recording } = model;
    byId("version").textContent = model.version;
    byId("command").textContent = recording.command || text.ALL_TRAINING;
    byId("recorded").textContent = text.recorded(duration(recording.seconds), clock(model.times[0] ?? 0, true), recording.interval, recording.samples, recording.file);
    byId("limits").textContent = [
        model.stretch > 0 ? text.thinned(duration(model.stretch)) : text.NOT_THINNED,
        ...(model.unshown > 0 ? [text.inSumsAlone(model.unshown)] : []),
        text.ABOUT_TIMES,
    ].join(" ");
    document.title = text.pageTitle(recording.command ? recording.command.slice(0, 60) : "shmguard");
}

function fillSubjects(select: HTMLSelectElement, model: Model): void {
    const chosen = select.value;
    const option = (value: string, label: string) => make("option", { value }, label);
    const groups = ["trainer", "worker", "manager", "other"].flatMap((role) => {
        const processes = model.processes.filter((process) => process.role === role);
        return processes.length
            ? [make("optgroup", { label: text.role(role).group }, ...processes.map((process) => option(`${model.processes.indexOf(process)}`, text.subjectOption(nameOf(process), bytes(process.peaks.rss)))))]
            : [];
    });
    const sums = model.sums["pss"] ? [option("by-process", text.BY_PROCESS), option("by-kind", text.BY_KIND)] : [option("by-kind", text.BY_KIND)];
    select.replaceChildren(...sums, ...groups);
    if ([...select.options].some(({ value }) => value === chosen)) select.value = chosen;
}

class Page {
    private model: Model | null = null;
    private readonly select = byId<HTMLSelectElement>("subject");
    private readonly span = new Span((from, to, isAll) => this.spanChanged(from, to, isAll));
    private readonly memory = new Chart(byId("memory"), text.charts.memory, this.span);
    private readonly shm = new Chart(byId("shm"), text.charts.shm, this.span);
    private readonly fds = new Chart(byId("fds"), text.charts.fds, this.span);
    private readonly machine = new Chart(byId("machine"), text.charts.machine, this.span);
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
        const end = model.times.at(-1) ?? 0;
        const rows = model.processes.map((process, i) => {
            const button = make("button", { type: "button", class: "link", title: text.SHOW_IN_CHARTS }, nameOf(process));
            button.addEventListener("click", () => {
                this.select.value = String(i);
                this.showCharts();
                byId("charts").scrollIntoView();
            });
            const { rss, uss, shm, fds } = process.peaks;
            return [button, make("code", {}, process.command), duration((process.ended ?? end) - process.first), bytes(rss), bytes(uss), bytes(shm), count(fds)];
        });
        byId("processes").replaceChildren(table(text.processCount(model.recording.processes), text.PROCESS_HEADS, rows, 2));
    }

    private spanChanged(from: number, to: number, isAll: boolean): void {
        byId("range").textContent = isAll ? "" : text.range(clock(from, false), clock(to, false), duration(to - from));
        byId<HTMLButtonElement>("whole").disabled = isAll;
    }

    private repaint(): void {
        for (const chart of this.charts) chart.repaint();
    }

    // Paper is white and narrow, whatever the screen looks like.
    private paper(on: boolean): void {
        document.documentElement.toggleAttribute("data-paper", on);
        this.repaint();
        for (const chart of this.charts) chart.resize(on ? PAPER_WIDTH : undefined);
    }
}

new Page().show(decode(JSON.parse(byId("data").textContent ?? "") as Data));
