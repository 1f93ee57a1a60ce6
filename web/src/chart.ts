// SPDX-License-Identifier: Apache-2.0
// One chart: lines and stacks over time, with a legend that switches them on and off, a tooltip, marks for events, and the
// figures as a table. All charts of the page share their span of time and their cursor.
import uPlot from "uplot";
import { make, table } from "./dom";
import { drawEvents, eventsNear, words } from "./events";
import { clock, duration } from "./format";
import type { Event, Values } from "./model";
import { peak } from "./model";
import { sentences } from "./language";
import * as text from "./text";

export interface Line {
    key: string;
    label: string;
    color: string; // a custom property of the style
    values: Values;
    stacked?: boolean;
    filled?: boolean; // down to zero, behind the others
    limit?: boolean; // a ceiling: dashed
    held?: boolean; // stands until the next sample: drawn in steps
}

// What a chart shows. A new frame, of another process or of later data, replaces the old one.
export interface Frame {
    times: number[];
    lines: Line[];
    events: Event[];
    note: string;
    format: (value: number | null) => string;
    formatTick: (value: number) => string;
    binary: boolean; // ticks at powers of two
    faint?: string; // the key of a line that is not shown at first: it would flatten the rest
}

const HEIGHT = 260;
const TABLE_ROWS = 24;
// A 24-hour clock, with the day below where it changes.
const DAY = "\n{YYYY}-{MM}-{DD}";
const TIMES: uPlot.Axis.Values = [
    [86400, "{MM}-{DD}", "\n{YYYY}", null, null, null, null, null, 1],
    [60, "{HH}:{mm}", DAY, null, DAY, null, null, null, 1],
    [1, "{HH}:{mm}:{ss}", DAY, null, DAY, null, null, null, 1],
    [0.001, "{ss}.{fff} s", DAY, null, DAY, null, "\n{HH}:{mm}", null, 1],
];
const BINARY_STEPS = Array.from({ length: 60 }, (_, power) => 2 ** power);

function cssColor(name: string): string {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// The span of time that all charts show.
export class Span {
    private readonly charts: Chart[] = [];
    private from = 0;
    private to = 1;
    private all: [number, number] = [0, 1];
    private zoomed = false;

    constructor(private readonly changed: (from: number, to: number, isAll: boolean) => void) {}

    add(chart: Chart): void {
        this.charts.push(chart);
    }

    // The span of all data. Charts that showed all of it still do.
    setAll(from: number, to: number): void {
        this.all = [from, to > from ? to : from + 1];
        if (!this.zoomed) this.set(...this.all);
    }

    get range(): [number, number] {
        return [this.from, this.to];
    }

    set(from: number, to: number): void {
        const least = Math.min(0.5, this.all[1] - this.all[0]);
        const width = Math.min(Math.max(to - from, least), this.all[1] - this.all[0]);
        const begin = Math.min(Math.max(from, this.all[0]), this.all[1] - width);
        if (begin === this.from && begin + width === this.to) return; // charts also report the spans that we set
        [this.from, this.to] = [begin, begin + width];
        this.zoomed = begin > this.all[0] || begin + width < this.all[1];
        for (const chart of this.charts) chart.spanTo(this.from, this.to);
        this.changed(this.from, this.to, !this.zoomed);
    }

    whole(): void {
        this.set(...this.all);
    }

    zoom(factor: number, around = (this.from + this.to) / 2): void {
        this.set(around - (around - this.from) * factor, around + (this.to - around) * factor);
    }

    shift(part: number): void {
        const by = (this.to - this.from) * part;
        this.set(this.from + by, this.to + by);
    }
}

export class Chart {
    private readonly note = make("p", { class: "quiet note" });
    private readonly legend = make("div", { class: "legend", role: "group", "aria-label": text.LEGEND });
    private readonly plot = make("div", { class: "plot", tabindex: "0", role: "img" });
    private readonly tip = make("div", { class: "tip", hidden: "" });
    private readonly tableHost = make("div");
    private readonly details = make("details", {}, make("summary", {}, text.AS_TABLE), this.tableHost);
    private readonly hidden = new Set<string>();
    private readonly judged = new Set<string>(); // faint lines that were hidden once: from then on the reader decides
    private readonly buttons = new Map<string, HTMLButtonElement>();
    private drawn: Line[] = [];
    private u: uPlot | null = null;
    private frame: Frame | null = null;
    private colors = new Map<string, string>();

    constructor(
        section: HTMLElement,
        private readonly title: string,
        private readonly span: Span,
    ) {
        section.append(this.note, this.plot, this.legend, this.details);
        span.add(this);
        new ResizeObserver(() => this.resize()).observe(this.plot);
        this.plot.addEventListener("keydown", (event) => this.key(event));
        this.plot.addEventListener("blur", () => this.u?.setCursor({ left: -10, top: -10 }));
        this.details.addEventListener("toggle", () => this.showTable());
    }

    // The width is that of the page, or for paper the one that is given.
    resize(width = this.plot.clientWidth): void {
        if (this.u && width > 0 && width !== this.u.width) this.u.setSize({ width, height: HEIGHT });
    }

    show(frame: Frame): void {
        if (frame.faint && !this.judged.has(frame.faint)) {
            this.judged.add(frame.faint);
            this.hidden.add(frame.faint);
        }
        const same = this.u && this.frame && keys(this.frame) === keys(frame) && this.frame.format === frame.format;
        this.frame = frame;
        this.note.textContent = frame.note;
        if (same) this.setData();
        else this.rebuild();
        this.plot.setAttribute("aria-label", text.described(this.title, this.summary()));
        this.showTable();
    }

    spanTo(from: number, to: number): void {
        this.u?.setScale("x", { min: from, max: to });
        this.showTable();
    }

    // Call when colours have changed.
    repaint(): void {
        this.rebuild();
    }

    private visible(): Line[] {
        return this.frame?.lines.filter((line) => !this.hidden.has(line.key)) ?? [];
    }

    private summary(): string {
        const format = this.frame?.format ?? String;
        return sentences(this.visible().map((line) => (line.limit ? text.describedLimit : text.describedLine)(line.label, format(peak(line.values)))));
    }

    private color(name: string): string {
        let value = this.colors.get(name);
        if (value === undefined) this.colors.set(name, (value = cssColor(name)));
        return value;
    }

    // The values of a stacked line include those of all lines below it.
    private data(): uPlot.AlignedData {
        const times = this.frame?.times ?? [];
        let below: Values | null = null;
        const columns = this.drawn.map((line) => {
            if (!line.stacked) return line.values;
            const base: Values | null = below;
            below = line.values.map((value, i) => (base?.[i] == null ? value : (value ?? 0) + base[i]));
            return below;
        });
        return [times, ...columns];
    }

    private setData(): void {
        this.drawn = this.visible();
        this.u?.setData(this.data(), false);
        this.u?.setScale("x", { min: this.span.range[0], max: this.span.range[1] });
        if (this.u) this.point(this.u); // the legend's buttons stay: somebody may be about to press one
    }

    private rebuild(): void {
        if (!this.frame) return;
        this.u?.destroy();
        this.colors.clear();
        this.drawn = this.visible();
        this.u = new uPlot(this.options(this.frame), this.data(), this.plot);
        this.u.over.append(this.tip);
        this.u.setScale("x", { min: this.span.range[0], max: this.span.range[1] });
        this.showLegend();
    }

    private options(frame: Frame): uPlot.Options {
        const axis: uPlot.Axis = {
            stroke: () => this.color("--quiet"),
            grid: { stroke: () => this.color("--grid"), width: 1 },
            ticks: { stroke: () => this.color("--grid"), width: 1 },
            font: "12px system-ui, sans-serif",
        };
        const steps = uPlot.paths.stepped?.({ align: 1 });
        let above: number | null = null;
        const bands: uPlot.Band[] = [];
        this.drawn.forEach((line, i) => {
            if (!line.stacked) return;
            if (above !== null) bands.push({ series: [i + 1, above] });
            above = i + 1;
        });
        return {
            width: this.plot.clientWidth || 600,
            height: HEIGHT,
            padding: [20, 8, 0, 0],
            legend: { show: false },
            scales: {
                x: { time: true },
                y: { range: (_u, _min, max) => [0, max > 0 ? max * 1.06 : 1] },
            },
            axes: [
                { ...axis, space: 76, values: TIMES },
                {
                    ...axis,
                    size: 78,
                    values: (_u, ticks) => ticks.map(frame.formatTick),
                    ...(frame.binary ? { incrs: BINARY_STEPS } : {}),
                },
            ],
            series: [
                {},
                ...this.drawn.map(
                    (line): uPlot.Series => ({
                        label: line.label,
                        stroke: () => this.color(line.color),
                        width: line.limit ? 2 : 1.5,
                        spanGaps: false,
                        points: { show: false },
                        ...(line.limit ? { dash: [8, 5] } : {}),
                        ...(line.stacked ? { fill: () => `${this.color(line.color)}66` } : {}),
                        ...(line.filled ? { fill: () => `${this.color(line.color)}33` } : {}),
                        ...(line.held && steps ? { paths: steps } : {}),
                    }),
                ),
            ],
            bands,
            cursor: {
                drag: { x: true, y: false, dist: 5 },
                focus: { prox: -1 },
                points: { size: 7 },
                sync: { key: "shmguard", setSeries: false, scales: ["x", null], filters: { pub: (type) => type === "mousemove" || type === "mouseleave", sub: () => true } },
            },
            hooks: {
                draw: [(u) => drawEvents(u, this.frame?.events ?? [], (name) => this.color(name))],
                setCursor: [(u) => this.point(u)],
                setScale: [
                    (u, key) => {
                        const { min, max } = u.scales[key] ?? {};
                        if (key === "x" && min != null && max != null) this.span.set(min, max);
                    },
                ],
            },
        };
    }

    // The legend is made of buttons, so that the keyboard reaches it. A line keeps its button, which may have the focus, as long as
    // it is drawn.
    private showLegend(): void {
        const lines = this.frame?.lines ?? [];
        for (const [key, button] of this.buttons) {
            if (lines.some((line) => line.key === key)) continue;
            button.remove();
            this.buttons.delete(key);
        }
        lines.forEach((line, i) => {
            const button = this.buttons.get(line.key) ?? this.makeButton(line.key);
            const [swatch, label] = button.children as unknown as [HTMLElement, HTMLElement];
            button.setAttribute("aria-pressed", String(!this.hidden.has(line.key)));
            swatch.className = line.limit ? "swatch dashed" : "swatch";
            swatch.style.setProperty("--swatch", `var(${line.color})`);
            label.textContent = line.label;
            if (this.legend.children[i] !== button) this.legend.insertBefore(button, this.legend.children[i] ?? null);
        });
        this.readout(null);
    }

    private makeButton(key: string): HTMLButtonElement {
        const readout = make("span", { class: "value" });
        const button = make("button", { type: "button", "data-key": key }, make("span", { class: "swatch", "aria-hidden": "true" }), make("span"), readout);
        button.addEventListener("click", () => {
            if (!this.hidden.delete(key)) this.hidden.add(key);
            this.rebuild();
            this.showTable();
        });
        this.buttons.set(key, button);
        return button;
    }

    private readout(i: number | null): void {
        const frame = this.frame;
        if (!frame) return;
        for (const line of frame.lines) {
            const most = frame.format(peak(line.values));
            const value = i === null ? (line.limit ? most : text.peakOf(most)) : line.values[i] == null ? "–" : frame.format(line.values[i]);
            const readout = this.buttons.get(line.key)?.lastElementChild;
            if (readout) readout.textContent = value;
        }
    }

    private point(u: uPlot): void {
        const i = u.cursor.idx;
        const left = u.cursor.left ?? -1;
        const frame = this.frame;
        const at = i == null ? undefined : frame?.times[i];
        if (!frame || left < 0 || i == null || at === undefined) {
            this.tip.hidden = true;
            this.readout(null);
            return;
        }
        this.readout(i);
        const active = u.over.matches(":hover") || document.activeElement === this.plot;
        this.tip.hidden = !active;
        if (!active) return;
        const rows = [...this.drawn].reverse().filter((line) => line.values[i] != null).map((line) => {
            const swatch = make("span", { class: "swatch" });
            swatch.style.setProperty("--swatch", `var(${line.color})`);
            return make("div", { class: "row" }, swatch, make("span", {}, line.label), make("b", {}, frame.format(line.values[i] ?? null)));
        });
        const stacked = this.drawn.filter((line) => line.stacked && line.values[i] != null);
        const sum = stacked.reduce((all, line) => all + (line.values[i] ?? 0), 0);
        const near = eventsNear(u, frame.events, left).slice(0, 6);
        this.tip.replaceChildren(
            make("div", { class: "when" }, text.since(clock(at, false), duration(at - (frame.times[0] ?? at)))),
            ...(stacked.length > 1 ? [make("div", { class: "row sum" }, make("span"), make("span", {}, text.TOGETHER), make("b", {}, frame.format(sum)))] : []),
            ...(rows.length ? rows : [make("div", {}, text.NOT_MEASURED)]),
            ...near.map((event) => make("div", { class: "happened" }, words(event))),
        );
        const width = u.over.clientWidth;
        const room = this.tip.offsetWidth + 14;
        this.tip.style.left = `${Math.max(0, left + room > width ? left - room : left + 14)}px`;
        this.tip.style.top = "4px";
    }

    private key(event: KeyboardEvent): void {
        const u = this.u;
        if (!u || event.ctrlKey || event.metaKey || event.altKey) return;
        const width = u.over.clientWidth;
        const left = u.cursor.left ?? -1;
        const at = left >= 0 ? u.posToVal(left, "x") : undefined;
        const step = event.shiftKey ? 40 : 4;
        const move = (to: number) => u.setCursor({ left: Math.min(Math.max(to, 0), width - 1), top: 10 });
        switch (event.key) {
            case "ArrowLeft":
                move((left < 0 ? width : left) - step);
                break;
            case "ArrowRight":
                move((left < 0 ? 0 : left) + step);
                break;
            case "+":
            case "=":
                this.span.zoom(0.5, at);
                break;
            case "-":
                this.span.zoom(2, at);
                break;
            case "0":
            case "Escape":
                this.span.whole();
                break;
            default:
                return;
        }
        event.preventDefault();
    }

    // Made when it is looked at: evenly spaced times of the span that is shown.
    private showTable(): void {
        const frame = this.frame;
        if (!this.details.open || !frame) return;
        const [from, to] = this.span.range;
        const inside = frame.times.map((_, i) => i).filter((i) => (frame.times[i] ?? 0) >= from && (frame.times[i] ?? 0) <= to);
        const step = Math.max(1, Math.ceil(inside.length / TABLE_ROWS));
        const lines = this.visible();
        const rows = inside
            .filter((_, n) => n % step === 0)
            .map((i) => [clock(frame.times[i] ?? 0, true), ...lines.map((line) => frame.format(line.values[i] ?? null))]);
        const most = [text.PEAK_OF_ALL, ...lines.map((line) => frame.format(peak(line.values)))];
        this.tableHost.replaceChildren(table(this.title, [text.HEAD_TIME, ...lines.map((line) => line.label)], [most, ...rows], 1));
    }
}

function keys(frame: Frame): string {
    return frame.lines.map((line) => `${line.key} ${line.label} ${line.color}`).join("\n");
}
