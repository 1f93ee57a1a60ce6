// SPDX-License-Identifier: Apache-2.0
// Follows the samples of serve, and says whether they arrive. A browser connects again by itself, and tells the server the last
// event that it has got; where the server cannot continue from there, it sends the whole history again.
import { byId } from "./dom";
import { clock, duration } from "./format";
import { append, decode, type Data, type Model, type Sample } from "./model";
import * as text from "./text";

const RETRY_MSEC = 5000; // where the browser does not, after an answer that is no stream
const LATE_INTERVALS = 3;
const LATE_SECONDS = 5;

interface History {
    keep: number;
    data: Data;
}

export function follow(show: (model: Model, keep: number) => void): void {
    const status = byId("live");
    let model: Model | null = null;
    let keep = 0;
    let heard = Date.now() / 1000; // when the last event came
    let lost: number | null = null; // when the connection was
    let due = false;

    const say = () => {
        const age = Date.now() / 1000 - heard;
        const late = model !== null && age > Math.max(LATE_SECONDS, LATE_INTERVALS * model.recording.interval);
        const words = lost !== null ? text.disconnected(clock(lost, false)) : model === null ? text.CONNECTING : late ? text.lateSample(duration(age)) : text.CONNECTED;
        status.hidden = false;
        status.classList.toggle("lost", lost !== null || late);
        if (status.textContent !== words) status.textContent = words;
    };
    // Many samples may arrive at once, or while nobody looks.
    const paint = () => {
        if (due || document.hidden) return;
        due = true;
        requestAnimationFrame(() => {
            due = false;
            if (model) show(model, keep);
        });
    };
    const arrived = () => {
        heard = Date.now() / 1000;
        lost = null;
        say();
        paint();
    };
    const connect = () => {
        const source = new EventSource("api/stream");
        source.addEventListener("history", (event: MessageEvent<string>) => {
            const history = JSON.parse(event.data) as History;
            keep = history.keep;
            model = decode(history.data);
            arrived();
        });
        source.addEventListener("sample", (event: MessageEvent<string>) => {
            if (model) append(model, JSON.parse(event.data) as Sample, keep);
            arrived();
        });
        source.addEventListener("error", () => {
            lost ??= Date.now() / 1000;
            say();
            if (source.readyState === EventSource.CLOSED) setTimeout(connect, RETRY_MSEC);
        });
    };
    document.addEventListener("visibilitychange", paint);
    setInterval(say, 1000);
    say();
    connect();
}
