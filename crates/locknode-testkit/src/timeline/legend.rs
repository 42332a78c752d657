//! What the signs mean, below the picture, for somebody who has read nothing else.

use crate::timeline::markup::Tag;

/// Paints it from `y` on.
pub(crate) fn paint(out: &mut String, y: u32) {
    let title = Tag::new(out, "text").set("class", "ln-legend-title");
    title
        .set("x", 8)
        .set("y", y + 14)
        .text("How to read it: time runs to the right; each client and each node has a lane; each client has its colour");
    let columns = [CLIENTS, NODES, REST];
    for (column, (entries, x)) in columns.iter().zip([8, 480, 960]).enumerate() {
        for (row, (sample, meaning)) in entries.iter().enumerate() {
            let y = y + 24 + u32::try_from(row).unwrap_or(0) * ROW;
            debug_assert!(column < 3 && row < ROWS, "the legend has room for it");
            self::sample(out, sample, x, y);
            let line = Tag::new(out, "text").set("class", "ln-legend");
            line.set("x", x + 48).set("y", y + 11).text(meaning);
        }
    }
}

fn sample(out: &mut String, sample: &Sample, x: u32, y: u32) {
    match sample {
        Sample::Bar(class, height) => bar(out, class, x, y, *height),
        Sample::Down => {
            bar(out, "ln-down", x, y, 12);
            let edge = Tag::new(out, "line").set("class", "ln-fall");
            let edge = edge.set("x1", x + 2).set("y1", y);
            edge.set("x2", x + 2).set("y2", y + 14).end();
        }
        Sample::Sign(id, on) => {
            if let Some(class) = on {
                bar(out, class, x, y, 12);
            }
            let y = match *id {
                "extended" | "not-extended" => y + 2,
                "written" | "tick" => y + 12,
                "flag" => y + 2,
                _ => y + 7,
            };
            let sign = Tag::new(out, "use").set("href", format_args!("#ln-{id}"));
            sign.set("x", x + 20).set("y", y).end();
        }
        Sample::Arrow => {
            let line = Tag::new(out, "line").set("class", "ln-message m0");
            let line = line.set("x1", x + 4).set("y1", y + 7);
            let line = line.set("x2", x + 36).set("y2", y + 7);
            line.set("marker-end", "url(#ln-head)").end();
        }
    }
}

fn bar(out: &mut String, class: &str, x: u32, y: u32, height: u32) {
    let bar = Tag::new(out, "rect").set("class", class);
    let bar = bar.set("x", x).set("y", y + 7 - height / 2);
    bar.set("width", 40).set("height", height).end();
}

/// What is shown left of a meaning.
#[derive(Debug)]
enum Sample {
    Bar(&'static str, u32),
    Sign(&'static str, Option<&'static str>),
    Arrow,
    Down,
}

/// Makes a column of one row for each sign: what is shown, and what it means.
macro_rules! columns {
    ($($column:ident { $($sample:expr => $meaning:literal,)+ })+) => {
        $(const $column: &[(Sample, &str)] = &[$(($sample, $meaning)),+];)+
    };
}

columns! {
    CLIENTS {
        Sample::Bar("c0 s0 ln-held", 12) => "client: believes it holds a lock (#7 or #..7: its fencing token)",
        Sample::Bar("c0 s0 ln-call", 5) => "client: is asking for a lock",
        Sample::Sign("failed", None) => "client: gave up, it did not get the lock",
        Sample::Sign("extended", Some("c0 s1")) => "lock extended",
        Sample::Sign("not-extended", Some("c0 s1")) => "client: could not extend its lock",
        Sample::Sign("lost", Some("c0 s1")) => "client: was told that its lock is lost",
        Sample::Sign("written", Some("c0 s1")) => "client: wrote to the resource that the lock guards",
        Sample::Sign("rejected", None) => "the resource rejected a write with an old fencing token",
    }
    NODES {
        Sample::Bar("c1 s1", 12) => "node: holds a key for an attempt that acquired the lock",
        Sample::Bar("c1 ln-vain", 12) => "node: holds a key for an attempt of which that is unknown",
        Sample::Bar("c1 ln-vain ln-gone", 10) => "node: had granted this, and forgot it when it went down",
        Sample::Bar("ln-quarantine", 12) => "node: quarantine after a start, it stays out of every lock",
        Sample::Down => "down, from the dark edge to the end of the gap",
        Sample::Bar("ln-stop", 12) => "stands still: pause, suspend or freeze",
        Sample::Sign("refused", None) => "node: refused a request",
    }
    REST {
        Sample::Bar("ln-band", 12) => "something that must never happen",
        Sample::Sign("flag", None) => "a fault: something was made to go wrong",
        Sample::Arrow => "a message, from who sent it to who got it",
        Sample::Sign("lost-message", None) => "a message that did not arrive",
        Sample::Bar("ln-density", 12) => "how many messages there were, when arrows would be too many",
        Sample::Sign("tick", None) => "a tick of the lane's own clock, where that was wrong",
    }
}

const ROW: u32 = 18;

const ROWS: usize = 8;

/// Pixels that it needs.
pub(crate) const HEIGHT: u32 = 24 + 8 * ROW + 10;
