// SPDX-License-Identifier: Apache-2.0
// Several recordings, or one with several ranks: which rank is late and why, a row for each rank and node. The rest of the page shows
// one recording, which is chosen here.
import { byId, make, table } from "./dom";
import { bytes, count, duration, share } from "./format";
import type { Data } from "./model";
import * as text from "./text";

export interface Rank {
    rank: number | null;
    node: string | null;
    node_number: number | null;
    attempt: number | null;
    seconds: number;
    step_seconds: number | null;
    waits: { loader: number | null; room: number | null; cpu: number | null; disk: number | null };
    work_share: number | null;
    rss_peak: number | null;
    straggler: boolean;
    why: keyof typeof text.lateWhy | null;
    evidence: string | null;
    advice: string | null;
    file: string;
    recording: number | null; // its place among those that the page has
}

export interface Node {
    node: string | null;
    node_number: number | null;
    ranks: number;
    shm: { size: number | null; used_peak: number | null };
    memory: { total: number | null; available_least: number | null };
    cgroup: { limit: number | null; used_peak: number | null };
    guard: { budget: number | null; bytes_peak: number | null; waits: number | null; waited_seconds: number | null };
    oom_kills: number | null;
}

export interface Fleet {
    job: string | null;
    clock: { basis: string; note: string | null };
    unshown: number;
    nodes: Node[];
    ranks: Rank[];
}

export interface Bundle {
    fleet: Fleet;
    recordings: Data[];
}

const nodeName = (of: { node: string | null; node_number: number | null }) => text.nodeName(of.node ?? "?", of.node_number);
const rankName = (rank: Rank) => (rank.rank === null ? nodeName(rank) : text.rankName(rank.rank, nodeName(rank)));
const partOf = (part: number | null, whole: number | null) => (whole === null ? "–" : text.partOf(bytes(part), bytes(whole)));
const ofTime = (seconds: number | null, rank: Rank) => (seconds === null ? "?" : share(seconds, rank.seconds));

function lateCard(rank: Rank): HTMLElement {
    return make(
        "article",
        { class: "card warning" },
        make("h3", {}, text.isLate(rankName(rank))),
        make("p", {}, rank.evidence),
        make("p", { class: "quiet" }, rank.advice),
    );
}

// choose: shows the recording of that place.
export function showFleet(fleet: Fleet, choose: (place: number) => void): void {
    const late = fleet.ranks.filter(({ straggler }) => straggler);
    byId("fleet").hidden = false;
    byId("late").replaceChildren(...(late.length ? late.map(lateCard) : [make("p", {}, text.NONE_LATE)]));
    byId("clock").textContent = [fleet.clock.note, ...(fleet.unshown > 0 ? [text.unshownRecordings(fleet.unshown)] : [])].filter(Boolean).join(" ");
    const rows = fleet.ranks.map((rank) => [
        rank.recording === null
            ? rankName(rank)
            : make("button", { type: "button", class: "link", title: text.SHOW_RECORDING, "data-recording": String(rank.recording) }, rankName(rank)),
        rank.straggler ? make("b", { class: "late" }, text.lateWhy[rank.why ?? "unknown"]) : "",
        rank.attempt === null ? "?" : count(rank.attempt),
        duration(rank.seconds),
        rank.step_seconds === null ? "?" : duration(rank.step_seconds),
        ofTime(rank.waits.loader, rank),
        ofTime(rank.waits.room, rank),
        ofTime(rank.waits.cpu, rank),
        ofTime(rank.waits.disk, rank),
        rank.work_share === null ? "?" : share(rank.work_share, 1),
        bytes(rank.rss_peak),
    ]);
    byId("ranks").replaceChildren(table(text.rankCount(fleet.ranks.length), text.RANK_HEADS, rows, 2));
    const nodes = fleet.nodes.map((node) => [
        nodeName(node),
        count(node.ranks),
        bytes(node.memory.available_least),
        partOf(node.cgroup.used_peak, node.cgroup.limit),
        partOf(node.shm.used_peak, node.shm.size),
        partOf(node.guard.bytes_peak, node.guard.budget),
        count(node.guard.waits),
        count(node.oom_kills),
    ]);
    byId("nodes").replaceChildren(table(text.nodeCount(fleet.nodes.length), text.NODE_HEADS, nodes, 1));
    byId("ranks").addEventListener("click", (event) => {
        const place = event.target instanceof Element ? event.target.closest("[data-recording]")?.getAttribute("data-recording") : null;
        if (place == null) return;
        choose(Number(place));
        byId("recording-title").scrollIntoView();
    });
}
