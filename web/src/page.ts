// SPDX-License-Identifier: Apache-2.0
// Decodes the data and shows them. A page without data is live: later data are shown by the same call with a newer model.
import { Chart, Span } from "./chart";
import { byId, make, table, update } from "./dom";
import { showEvents } from "./events";
import { showFleet, type Bundle } from "./fleet";
import { bytes, clock, count, duration, share } from "./format";
import { fdsFrame, machineFrame, memoryFrame, shmFrame, type Subject } from "./frames";
import { follow } from "./live";
import { decode, latest, nameOf, peak, type Data, type Model, type Process } from "./model";
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

function showFigures(host: HTMLElement, model: Model, live: boolean): void {
    const { peaks, recording, job, sums } = model;
    const { tiles } = text;
    const limit = (live ? latest : peak)(job["group_limit"]);
    const size = (live ? latest : peak)(job["shm_size"]);
    const total = peak(job["memory_total"]);
    const memory = live ? latest(sums["pss"]) : peaks.estimated.pss;
    const group = live ? latest(job["group_used"]) : peaks.cgroup_used;
    const available = live ? latest(job["memory_available"]) : peaks.memory_available_least;
    const shm = live ? latest(job["shm_used"]) : peaks.shm;
    const fds = live ? latest(sums["fds"]) : peaks.fds;
    const processes = live ? latest(sums["processes"]) : peaks.processes;
    const partOf = (part: number | null, whole: number | null) => (part !== null && whole ? Math.min(1, part / whole) : null);
    update(host, [
        tile(tiles.memory.name, bytes(memory), tiles.memory.more, null),
        limit !== null
            ? tile(tiles.group.name, bytes(group), tiles.group.more(bytes(limit), share(group, limit)), partOf(group, limit))
            : tile(
                  live ? tiles.availableNow.name : tiles.available.name,
                  bytes(available),
                  tiles.available.more(bytes(total)),
                  available !== null && total ? 1 - available / total : null,
              ),
        tile(tiles.shm.name, bytes(shm), size ? tiles.shm.more(bytes(size), share(shm, size)) : "", partOf(shm, size)),
        tile(tiles.descriptors.name, count(fds), tiles.descriptors.more, null),
        tile(tiles.processes.name, count(processes), live ? tiles.processesNow.more : tiles.processes.more(recording.processes), null),
        ...(peaks.oom_kills ? [tile(tiles.kills.name, count(peaks.oom_kills), live ? tiles.killsNow.more : tiles.kills.more, null)] : []),
    ]);
}

function showHeadLive(model: Model, keep: number): void {
    byId("version").textContent = model.version;
    byId("command").textContent = text.ALL_TRAINING;
    byId("recorded").textContent = text.following(duration(keep), model.recording.interval);
    byId("limits").textContent = [...(model.unshown > 0 ? [text.inSumsAlone(model.unshown)] : []), text.ABOUT_TIMES_LIVE].join(" ");
    byId("figures-title").textContent = text.NOW;
    byId("whole").textContent = text.WHOLE_LIVE;
    byId("processes-note").textContent = text.PROCESSES_NOW;
    document.title = text.LIVE_TITLE;
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

function keyOf(process: Process): string {
    return `${process.pid} ${process.first}`;
}

function fillSubjects(select: HTMLSelectElement, model: Model): void {
    const chosen = select.value;
    const option = (value: string, label: string) => make("option", { value }, label);
    const groups = ["trainer", "worker", "manager", "other"].flatMap((role) => {
        const processes = model.processes.filter((process) => process.role === role);
        return processes.length
            ? [make("optgroup", { label: text.role(role).group }, ...processes.map((process) => option(keyOf(process), text.subjectOption(nameOf(process), bytes(process.peaks.rss)))))]
            : [];
    });
    const sums = model.sums["pss"] ? [option("by-process", text.BY_PROCESS), option("by-kind", text.BY_KIND)] : [option("by-kind", text.BY_KIND)];
    update(select, [...sums, ...groups]);
    if ([...select.options].some(({ value }) => value === chosen)) select.value = chosen;
}

function showSites({ sites }: Model): void {
    byId("sites").hidden = !sites;
    byId("lines").replaceChildren(...(sites?.lines ?? []).map((line) => make("li", {}, line)));
    byId("notes").replaceChildren(...(sites?.notes ?? []).map((note) => make("p", { class: "quiet" }, note)));
}

class Page {
    private model: Model | null = null;
    private keep: number | null = null; // seconds; null: a recording
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
        byId("processes").addEventListener("click", (event) => this.processChosen(event));
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint());
        matchMedia("print").addEventListener("change", (event) => this.paper(event.matches));
        addEventListener("beforeprint", () => this.paper(true));
        addEventListener("afterprint", () => this.paper(false));
    }

    // keep: the page is live, and shows so many seconds.
    show(model: Model, keep: number | null): void {
        this.model = model;
        this.keep = keep;
        if (keep === null) showHead(model);
        else showHeadLive(model, keep);
        showVerdicts(byId("verdicts"), model.verdicts);
        showSites(model);
        showFigures(byId("figures"), model, keep !== null);
        if (document.activeElement !== this.select || keep === null) fillSubjects(this.select, model); // a list that is open stays as it is
        this.span.setAll(model.times[0] ?? 0, model.times.at(-1) ?? 1);
        this.showCharts();
        showEvents(byId("events"), model.events);
        this.showProcesses(model);
    }

    private showCharts(): void {
        if (!this.model) return;
        const value = this.select.value;
        const subject: Subject = value === "by-process" || value === "by-kind" ? value : (this.model.processes.find((process) => keyOf(process) === value) ?? "by-kind");
        this.memory.show(memoryFrame(this.model, subject));
        this.shm.show(shmFrame(this.model, subject));
        this.fds.show(fdsFrame(this.model, subject));
        this.machine.show(machineFrame(this.model));
    }

    private showProcesses(model: Model): void {
        const end = model.times.at(-1) ?? 0;
        const live = this.keep !== null;
        const shown = model.processes.filter(({ ended }) => !live || ended === null);
        const rows = shown.map((process) => {
            const button = make("button", { type: "button", class: "link", title: text.SHOW_IN_CHARTS, "data-process": keyOf(process) }, nameOf(process));
            const { peaks, series } = process;
            const parts = ["anon", "file", "shmem"].map((name) => latest(series[name]));
            const rss = parts.some((part) => part === null) ? null : parts.reduce((sum: number, part) => sum + (part ?? 0), 0);
            const figures = live ? { rss, uss: latest(series["uss"]), shm: latest(series["shm"]), fds: latest(series["fds"]) } : peaks;
            const lived = duration((process.ended ?? end) - process.first);
            return [button, make("code", {}, process.command), lived, bytes(figures.rss), bytes(figures.uss), bytes(figures.shm), count(figures.fds)];
        });
        update(byId("processes"), [table(text.processCount(live ? shown.length : model.recording.processes), text.PROCESS_HEADS, rows, 2)]);
    }

    private processChosen(event: MouseEvent): void {
        const key = event.target instanceof Element ? event.target.closest("[data-process]")?.getAttribute("data-process") : null;
        if (key == null) return;
        this.select.value = key;
        this.showCharts();
        byId("charts").scrollIntoView();
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

function showBundle(page: Page, { fleet, recordings }: Bundle): void {
    const select = byId<HTMLSelectElement>("recording");
    const show = (place: number) => {
        const data = recordings[place];
        if (!data) return;
        select.value = String(place);
        page.show(decode(data), null);
        document.title = text.pageTitle(fleet.job ?? text.MERGED);
    };
    select.replaceChildren(...recordings.map(({ recording }, place) => make("option", { value: String(place) }, recording.file)));
    select.addEventListener("change", () => show(Number(select.value)));
    showFleet(fleet, show);
    show(0);
}

const data = JSON.parse(byId("data").textContent ?? "") as Data | Bundle | null;
const page = new Page();
if (data && "fleet" in data) showBundle(page, data);
else if (data) page.show(decode(data), null);
else follow((model, keep) => page.show(model, keep));
