// SPDX-License-Identifier: Apache-2.0
// Searches the sections of all pages of this language, which index.js has in `window.sections`: [address, page, heading, text].
"use strict";
(() => {
    const input = document.querySelector("input");
    const list = document.querySelector("#found");
    const MOST = 12;

    // How well a section matches: every word must occur; in the name of a page it counts most.
    const score = ([, page, heading, text], words) => {
        let sum = 0;
        for (const word of words) {
            const here = (page.toLowerCase().includes(word) ? 8 : 0) + (heading.toLowerCase().includes(word) ? 4 : 0) +
                (text.toLowerCase().includes(word) ? 1 : 0);
            if (here === 0) return 0;
            sum += here;
        }
        return sum;
    };

    const excerpt = (text, word) => {
        const at = Math.max(0, text.toLowerCase().indexOf(word) - 40);
        return (at > 0 ? "… " : "") + text.slice(at, at + 140) + (at + 140 < text.length ? " …" : "");
    };

    const element = (name, text, more = {}) => Object.assign(document.createElement(name), { textContent: text, ...more });

    const search = () => {
        const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
        const hits = words.length === 0 ? [] : window.sections.map((section) => [score(section, words), section])
            .filter(([points]) => points > 0).sort(([a], [b]) => b - a).slice(0, MOST);
        list.replaceChildren(...hits.map(([, [address, page, heading, text]]) => {
            const item = document.createElement("li");
            const link = element("a", heading === page ? page : `${page}: ${heading}`, { href: address });
            item.append(link, element("div", excerpt(text, words[0]), { className: "where" }));
            return item;
        }));
        if (words.length > 0 && hits.length === 0) list.replaceChildren(element("li", list.dataset.nothing));
    };

    input.addEventListener("input", search);
    input.form.addEventListener("submit", (event) => {
        event.preventDefault();
        list.querySelector("a")?.click();
    });
    document.addEventListener("keydown", (event) => {
        if (event.key === "/" && document.activeElement !== input) {
            event.preventDefault();
            input.focus();
        } else if (event.key === "Escape") {
            input.value = "";
            search();
        }
    });
})();
