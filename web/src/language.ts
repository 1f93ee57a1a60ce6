// SPDX-License-Identifier: Apache-2.0
// Translations come with the page, as data: English text to translated text. English itself has none.
import { byId } from "./dom";

// Without a document there is no page: tests run parts of it in Node.
const texts = typeof document === "undefined" ? null : byId("texts").textContent;
const translations = JSON.parse(texts ?? "{}") as Record<string, string>;

export const _ = (english: string): string => translations[english] ?? english;

// Marks a text for translation where it is only kept.
export const N_ = (english: string): string => english;

// A sentence with {names} in it.
export function say(sentence: string, values: Record<string, string | number>): string {
    return sentence.replace(/\{(\w+)\}/g, (place, name: string) => (name in values ? String(values[name]) : place));
}

// Sentences one after the other; Chinese has no blank behind a full stop.
export const sentences = (all: string[]): string => all.join(" ").replace(/([。！？]) /g, "$1");

// The words of page.html, which is English.
export function translatePage(): void {
    if (Object.keys(translations).length === 0) return;
    document.title = _(document.title);
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        if (node instanceof Element) {
            for (const name of ["title", "aria-label"]) {
                const words = node.getAttribute(name);
                if (words) node.setAttribute(name, _(words));
            }
        } else {
            const words = node.textContent?.trim() ?? "";
            const translated = _(words);
            if (translated !== words) node.textContent = translated;
        }
    }
}
