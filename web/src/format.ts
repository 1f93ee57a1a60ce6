// SPDX-License-Identifier: Apache-2.0
// Figures as people read them; null is "?".
import { _, say } from "./language";

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(value: number | null): string {
    if (value === null) return "?";
    let unit = 0;
    let amount = value;
    while (Math.abs(amount) >= 1024 && unit < UNITS.length - 1) {
        amount /= 1024;
        unit++;
    }
    return `${unit === 0 ? amount : amount.toFixed(1)} ${UNITS[unit]}`;
}

// For an axis, whose ticks are round.
export function bytesShort(value: number): string {
    return bytes(value).replace(".0 ", " ");
}

export function count(value: number | null): string {
    return value === null ? "?" : Math.round(value).toLocaleString("en");
}

export function duration(seconds: number): string {
    const whole = Math.max(0, seconds);
    if (whole < 120) return `${whole < 10 ? whole.toFixed(1) : Math.round(whole)} s`;
    const minutes = Math.round(whole / 60);
    if (minutes < 120) return `${minutes} min`;
    const hours = Math.round(whole / 3600);
    if (hours < 48) return minutes % 60 && hours < 10 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${hours} h`;
    return say(_("{n} days"), { n: (whole / 86400).toFixed(1) });
}

export function clock(seconds: number, withDay: boolean): string {
    const date = new Date(seconds * 1000);
    const two = (n: number) => String(n).padStart(2, "0");
    const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
    return withDay ? `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}` : time;
}

export function share(part: number | null, whole: number | null): string {
    if (part === null || !whole) return "";
    return part > 0 && part < whole / 100 ? "<1%" : `${Math.round((100 * part) / whole)}%`;
}
