// SPDX-License-Identifier: Apache-2.0
import { make, update } from "./dom";
import { duration } from "./format";
import { nameOf, type Fix, type Verdict } from "./model";
import * as text from "./text";

const SIGNS = { good: "✓", info: "i", warning: "!", critical: "✗" };

function subjectOf(verdict: Verdict): string {
    const { pid, role } = verdict.subject;
    return role === "job" || pid === null ? text.WHOLE_JOB : nameOf({ pid, role });
}

function fixItem(fix: Fix): HTMLElement {
    const needs = text.NEEDS[fix.needs];
    return make(
        "li",
        {},
        fix.what,
        needs ? make("span", { class: "needs" }, ` ${needs}`) : null,
        fix.command ? make("pre", {}, make("code", {}, fix.command)) : null,
    );
}

function card(verdict: Verdict, others: Verdict[]): HTMLElement {
    const facts = [
        verdict.id === "too-short" ? null : make("li", {}, text.confidence(verdict.confidence_words, verdict.confidence)),
        verdict.grows ? make("li", {}, text.grows(verdict.rate_words)) : null,
        verdict.exhausts_in === null ? null : make("li", {}, text.exhausts(duration(verdict.exhausts_in))),
    ];
    const pids = others.map((other) => (other.grows ? text.withRate(`${other.subject.pid}`, other.rate_words) : `${other.subject.pid}`)).join(text.COMMA);
    const subject = subjectOf(verdict);
    return make(
        "article",
        { class: `card ${verdict.severity}`, "data-verdict": verdict.id },
        make(
            "h3",
            {},
            make("span", { class: "sign", "aria-hidden": "true" }, SIGNS[verdict.severity]),
            make("span", {}, verdict.title, make("span", { class: "subject" }, ` · ${others.length ? text.andMore(subject, others.length) : subject}`)),
        ),
        make("p", { class: "meaning" }, verdict.meaning),
        make("ul", { class: "facts" }, ...facts),
        verdict.evidence ? make("p", { class: "evidence" }, verdict.evidence) : null,
        others.length ? make("p", { class: "quiet" }, text.alsoIn(others.length, pids)) : null,
        verdict.fixes.length ? make("h4", {}, text.FIXES) : null,
        verdict.fixes.length ? make("ol", {}, ...verdict.fixes.map(fixItem)) : null,
    );
}

// The same verdict about several processes of one role is one problem and has one card.
export function showVerdicts(host: HTMLElement, verdicts: Verdict[]): void {
    const groups = new Map<string, Verdict[]>();
    for (const verdict of verdicts) {
        const key = `${verdict.id} ${verdict.subject.role} ${verdict.metric}`;
        groups.set(key, [...(groups.get(key) ?? []), verdict]);
    }
    update(host, [...groups.values()].flatMap(([first, ...others]) => (first ? [card(first, others)] : [])));
}
