// SPDX-License-Identifier: Apache-2.0
// Events as marks on the charts, in their tooltips and in a table.
import type uPlot from "uplot";
import { make, table, update } from "./dom";
import { clock } from "./format";
import { nameOf, type Event } from "./model";
import * as text from "./text";

const SIGNS: Record<Event["kind"], string> = { born: "▲", ended: "▼", "oom-kill": "✗", attempt: "◆", mark: "●", epoch: "↻" };

// Above the plot, one above the other where they coincide. Processes start and end with an epoch, so its sign stands in the plot.
const HEIGHTS: Record<Event["kind"], number> = { born: 8, ended: 1, "oom-kill": 10, attempt: 2, mark: 2, epoch: -11 };

// What must not be hidden by other signs is drawn last.
const ORDER: Event["kind"][] = ["ended", "born", "epoch", "mark", "attempt", "oom-kill"];

function what(event: Event): string {
    const words = text.events[event.kind];
    if (event.count > 1) return words.some(event.count);
    if ("one" in words && event.pid !== null) return words.one(nameOf({ pid: event.pid, role: event.role }));
    return "job" in words ? words.job : words.some(1);
}

// Marks, attempts and epochs say themselves what they are.
export function words(event: Event): string {
    const named = event.kind === "mark" || event.kind === "attempt" || event.kind === "epoch";
    const told = event.count > 1 || !event.text ? what(event) : named ? event.text : text.withDetail(what(event), event.text);
    return `${SIGNS[event.kind]} ${told}`;
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

function whom(event: Event): string {
    if (event.pid === null) return text.THE_JOB;
    const name = nameOf({ pid: event.pid, role: event.role });
    return event.count > 1 ? text.andOthers(name) : name;
}

export function showEvents(host: HTMLElement, events: Event[]): void {
    const rows = events.map((event) => [
        clock(event.seconds, true),
        `${SIGNS[event.kind]} ${event.count > 1 ? text.events[event.kind].some(event.count) : text.eventKinds[event.kind]}`,
        whom(event),
        event.text,
    ]);
    update(host, [rows.length ? table(text.eventCount(rows.length), text.EVENT_HEADS, rows, text.EVENT_HEADS.length) : make("p", {}, text.NO_EVENTS)]);
}
