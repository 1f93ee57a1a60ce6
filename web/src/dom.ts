// SPDX-License-Identifier: Apache-2.0
// Makes elements from text alone, so that nothing in a recording is ever read as markup.

type Child = Node | string | null;

export function make<K extends keyof HTMLElementTagNameMap>(
    tag: K,
    attributes: Record<string, string> = {},
    ...children: Child[]
): HTMLElementTagNameMap[K] {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children.filter((child) => child !== null));
    return element;
}

export function byId<T extends HTMLElement>(id: string): T {
    const element = document.getElementById(id);
    if (!element) throw new Error(`the page has no #${id}`);
    return element as T;
}

// A table that scrolls sideways by itself, so that the page never has to.
export function table(caption: string, heads: string[], rows: Child[][], numbersFrom: number): HTMLElement {
    const cell = (tag: "td" | "th", child: Child, column: number) =>
        make(tag, { ...(column >= numbersFrom ? { class: "number" } : {}), ...(tag === "th" ? { scope: "col" } : {}) }, child);
    return make(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
        make(
            "table",
            {},
            make("caption", {}, caption),
            make("thead", {}, make("tr", {}, ...heads.map((head, column) => cell("th", head, column)))),
            make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((child, column) => cell("td", child, column))))),
        ),
    );
}

function updateNode(old: ChildNode, fresh: ChildNode): void {
    if (old instanceof Text && fresh instanceof Text) {
        if (old.data !== fresh.data) old.data = fresh.data;
    } else if (old instanceof Element && fresh instanceof Element && old.tagName === fresh.tagName) {
        for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
        for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
        update(old, [...fresh.childNodes]);
    } else {
        old.replaceWith(fresh);
    }
}

// Gives the host these children, and touches only what differs: focus, selection and scrolling stay. Listeners of the children are
// not taken over: they belong to the host.
export function update(host: Element, fresh: ChildNode[]): void {
    const old = [...host.childNodes];
    fresh.forEach((node, i) => {
        const before = old[i];
        if (before) updateNode(before, node);
        else host.append(node);
    });
    for (const rest of old.slice(fresh.length)) rest.remove();
}
