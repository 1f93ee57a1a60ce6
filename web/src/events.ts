// Events as marks on the charts, in their tooltips and in a table.
import type uPlot from "uplot";
import { table } from "./dom";
import { clock, countOf } from "./format";
import type { Event } from "./model";

const WORDS: Record<Event["kind"], [one: string, many: string]> = {
    born: ["process born", "processes born"],
    ended: ["process ended", "processes ended"],
    "oom-kill": ["OOM kill", "OOM kills"],
    attempt: ["attempt", "attempts"],
    mark: ["mark", "marks"],
    epoch: ["epoch", "epochs"],
};

const SIGNS: Record<Event["kind"], string> = { born: "▲", ended: "▼", "oom-kill": "✗", attempt: "◆", mark: "●", epoch: "↻" };

// Above the plot; what comes together stands one above the other. An epoch comes with births and ends: it stands in the plot.
const HEIGHTS: Record<Event["kind"], number> = { born: 8, ended: 1, "oom-kill": 10, attempt: 2, mark: 2, epoch: -11 };

// What must not be hidden by the rest is drawn last.
const ORDER: Event["kind"][] = ["ended", "born", "epoch", "mark", "attempt", "oom-kill"];

export function words(event: Event): string {
    const who = event.pid === null ? "" : `${event.role} ${event.pid}`;
    if (event.count > 1) return `${SIGNS[event.kind]} ${countOf(event.count, ...WORDS[event.kind])}`;
    if (event.kind === "mark" || event.kind === "attempt" || event.kind === "epoch") return `${SIGNS[event.kind]} ${event.text || WORDS[event.kind][0]}`;
    const what = event.kind === "oom-kill" ? "OOM kill" : event.kind;
    return `${SIGNS[event.kind]} ${who} ${what}${event.text ? `: ${event.text}` : ""}`.replace("  ", " ");
}

export function drawEvents(u: uPlot, events: Event[], color: (name: string) => string): void {
    const { ctx } = u;
    const { left, top, width, height } = u.bbox;
    const ratio = window.devicePixelRatio || 1;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, 0, width, top + height);
    ctx.clip();
    ctx.textAlign = "center";
    for (const kind of ORDER) {
        ctx.strokeStyle = ctx.fillStyle = color(`--event-${kind}`);
        ctx.lineWidth = (kind === "oom-kill" ? 2 : 1) * ratio;
        ctx.setLineDash(kind === "born" || kind === "ended" ? [2 * ratio, 3 * ratio] : []);
        ctx.font = `${(kind === "oom-kill" || kind === "epoch" ? 12 : 9) * ratio}px system-ui, sans-serif`;
        let before = -Infinity;
        for (const event of events) {
            if (event.kind !== kind) continue;
            const x = Math.round(u.valToPos(event.seconds, "x", true));
            if (x < left || x > left + width || x - before < 3 * ratio) continue;
            before = x;
            ctx.beginPath();
            ctx.moveTo(x + 0.5, top);
            ctx.lineTo(x + 0.5, top + height);
            ctx.stroke();
            ctx.fillText(SIGNS[kind], x + (kind === "epoch" ? 7 * ratio : 0), top - HEIGHTS[kind] * ratio);
        }
    }
    ctx.restore();
}

export function eventsNear(u: uPlot, events: Event[], left: number): Event[] {
    return events.filter((event) => Math.abs(u.valToPos(event.seconds, "x") - left) <= 6);
}

export function showEvents(host: HTMLElement, events: Event[]): void {
    const heads = ["Time", "What", "Who", "Words"];
    const rows = events.map((event) => [
        clock(event.seconds, true),
        `${SIGNS[event.kind]} ${event.count > 1 ? countOf(event.count, ...WORDS[event.kind]) : WORDS[event.kind][0]}`,
        event.pid === null ? "the job" : event.count > 1 ? `${event.role} ${event.pid} and others` : `${event.role} ${event.pid}`,
        event.text,
    ]);
    host.replaceChildren(rows.length ? table(countOf(rows.length, "event", "events"), heads, rows, heads.length) : "No process came or went, and nothing else happened.");
}
