import { make } from "./dom";
import { duration } from "./format";
import type { Fix, Verdict } from "./model";

interface Look {
    title: string;
    level: "good" | "info" | "warning" | "bad";
}

const LOOKS: Record<string, Look> = {
    steady: { title: "Steady", level: "good" },
    leak: { title: "Memory leak", level: "bad" },
    "copy-on-write": { title: "Copy-on-write growth", level: "warning" },
    sawtooth: { title: "Grows within each epoch", level: "warning" },
    backlog: { title: "Shared memory piles up", level: "bad" },
    "fd-leak": { title: "Descriptors pile up", level: "bad" },
    "page-cache": { title: "Page cache grows", level: "info" },
    "too-short": { title: "Too short to say", level: "info" },
};

const SIGNS = { good: "✓", info: "i", warning: "!", bad: "✗" };

const NEEDS: Record<string, string> = {
    root: "needs root",
    restart: "needs a restart",
    admin: "needs an administrator",
};

function subjectOf(verdict: Verdict): string {
    const { pid, role } = verdict.subject;
    return role === "job" || pid === null ? "the whole job" : `${role === "other" ? "process" : role} ${pid}`;
}

function fixItem(fix: Fix): HTMLElement {
    const needs = NEEDS[fix.needs];
    return make(
        "li",
        {},
        fix.what,
        needs ? make("span", { class: "needs" }, ` (${needs})`) : null,
        fix.command ? make("pre", {}, make("code", {}, fix.command)) : null,
    );
}

function card(verdict: Verdict, others: Verdict[]): HTMLElement {
    const look = LOOKS[verdict.id] ?? { title: verdict.id, level: "info" };
    const grows = look.level !== "good" && verdict.id !== "too-short" && verdict.rate_words !== "";
    const facts = [
        verdict.id === "too-short" ? null : make("li", {}, make("b", {}, verdict.confidence_words), ` (${verdict.confidence.toFixed(2)})`),
        grows ? make("li", {}, "grows by ", make("b", {}, verdict.rate_words)) : null,
        verdict.exhausts_in === null ? null : make("li", {}, "none left in about ", make("b", {}, duration(verdict.exhausts_in)), " (estimated)"),
    ];
    const same = others.map((other) => `${other.subject.pid}${grows ? ` (${other.rate_words})` : ""}`).join(", ");
    return make(
        "article",
        { class: `card ${look.level}`, "data-verdict": verdict.id },
        make(
            "h3",
            {},
            make("span", { class: "sign", "aria-hidden": "true" }, SIGNS[look.level]),
            make("span", {}, look.title, make("span", { class: "subject" }, ` · ${subjectOf(verdict)}${others.length ? ` and ${others.length} more` : ""}`)),
        ),
        make("p", { class: "meaning" }, verdict.meaning),
        make("ul", { class: "facts" }, ...facts),
        verdict.evidence ? make("p", { class: "evidence" }, verdict.evidence) : null,
        same ? make("p", { class: "quiet" }, `The same of ${same}.`) : null,
        verdict.fixes.length ? make("h4", {}, "What to do") : null,
        verdict.fixes.length ? make("ol", {}, ...verdict.fixes.map(fixItem)) : null,
    );
}

// The same thing of several processes of one role is one matter, told once.
export function showVerdicts(host: HTMLElement, verdicts: Verdict[]): void {
    const groups = new Map<string, Verdict[]>();
    for (const verdict of verdicts) {
        const key = `${verdict.id} ${verdict.subject.role} ${verdict.metric}`;
        groups.set(key, [...(groups.get(key) ?? []), verdict]);
    }
    host.replaceChildren(...[...groups.values()].flatMap(([first, ...others]) => (first ? [card(first, others)] : [])));
}
