//! Files of one room use each other in one direction, so that a room can be read from its basic types up to its machine.

use std::collections::{BTreeMap, BTreeSet};

use super::arrows::Modules;
use super::rooms::room_of;
use super::source::{File, project_files, shipped_rust};
use crate::{Complaints, none, one};

/// Circles that existed when the rule came, by the files in each.
///
/// A ratchet: no circle may grow, none may be added, and a file that is no longer in a circle leaves the list.
const KNOWN: &[&[&str]] = &[];

type Arrows<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Complaints about files of one room that use each other in a circle.
fn check(files: &[File], known: &[&[&str]]) -> Complaints {
    let modules = Modules::new(files);
    let arrows = inside_rooms(modules.arrows());
    let circles = circles(&arrows);
    let mut complaints = Vec::new();
    for circle in &circles {
        if !known.iter().any(|known| circle.iter().all(|file| known.contains(file))) {
            let way = way_round(&arrows, circle).join(" -> ");
            complaints.push(format!("a new circle, or one that grew: {way}"));
        }
    }
    for file in known.iter().copied().flatten() {
        if !circles.iter().any(|circle| circle.contains(file)) {
            complaints.push(format!("{file} is in no circle now: take it off the list"));
        }
    }
    complaints
}

/// The arrows whose two ends are in the same room.
fn inside_rooms(mut arrows: Arrows<'_>) -> Arrows<'_> {
    for (from, to) in &mut arrows {
        to.retain(|to| room_of(from).is_some() && room_of(from) == room_of(to));
    }
    arrows
}

/// Files that can be reached from a file along the arrows.
fn reached<'a>(arrows: &Arrows<'a>, from: &str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut next: Vec<&str> = arrows.get(from).into_iter().flatten().copied().collect();
    while let Some(file) = next.pop() {
        if seen.insert(file) {
            next.extend(arrows.get(file).into_iter().flatten());
        }
    }
    seen
}

/// Sets of files each of which reaches all others of its set, and itself.
fn circles<'a>(arrows: &Arrows<'a>) -> BTreeSet<BTreeSet<&'a str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        arrows.keys().map(|file| (*file, reached(arrows, file))).collect();
    let circle_of = |file: &&'a str| {
        reached[file].iter().copied().filter(|other| reached[other].contains(file)).collect()
    };
    arrows.keys().map(circle_of).filter(|circle: &BTreeSet<_>| !circle.is_empty()).collect()
}

/// One shortest way from the first file of a circle back to it.
fn way_round<'a>(arrows: &Arrows<'a>, circle: &BTreeSet<&'a str>) -> Vec<&'a str> {
    let Some(&start) = circle.first() else { return Vec::new() };
    let mut ways = vec![vec![start]];
    let mut seen = BTreeSet::new();
    loop {
        let mut longer = Vec::new();
        for way in ways {
            let Some(last) = way.last() else { continue };
            for to in arrows[last].intersection(circle) {
                let way: Vec<&str> = way.iter().copied().chain([*to]).collect();
                if *to == start {
                    return way;
                }
                if seen.insert(*to) {
                    longer.push(way);
                }
            }
        }
        assert!(!longer.is_empty(), "every file of a circle reaches every other");
        ways = longer;
    }
}

/// One line for each room: files, lines, arrows to other rooms, arrows and circles among its own files;
/// then each circle with the arrows inside it.
fn map(files: &[File]) -> String {
    let modules = Modules::new(files);
    let arrows = modules.arrows();
    let inside = inside_rooms(arrows.clone());
    let circles = circles(&inside);
    let mut rooms: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let shipped = shipped_rust(files);
    for file in &shipped {
        let Some(room) = room_of(&file.path) else { continue };
        let (count, lines) = rooms.entry(room).or_default();
        *count += 1;
        *lines += file.text.lines().count();
    }
    let mut text = format!(
        "{:8} {:>5} {:>6} {:>6} {:>7}  uses\n",
        "room", "files", "lines", "arrows", "circles"
    );
    for (room, (count, lines)) in rooms {
        let of_room = |file: &str| room_of(file) == Some(room);
        let own = inside.iter().filter(|(from, _)| of_room(from));
        let own: usize = own.map(|(_, to)| to.len()).sum();
        let round = circles.iter().filter(|circle| circle.iter().any(|file| of_room(file))).count();
        let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
        for to in arrows.iter().filter(|(from, _)| of_room(from)).flat_map(|(_, to)| to) {
            if let Some(other) = room_of(to).filter(|other| *other != room) {
                *uses.entry(other).or_default() += 1;
            }
        }
        let uses: Vec<String> =
            uses.iter().map(|(room, times)| format!("{room} {times}")).collect();
        let uses = uses.join(", ");
        text += &format!("{room:8} {count:5} {lines:6} {own:6} {round:7}  {uses}\n");
    }
    for circle in &circles {
        text += &format!("circle of {}:\n", circle.len());
        for file in circle {
            let to: Vec<&str> = inside[file].intersection(circle).copied().collect();
            text += &format!("  {file} -> {}\n", to.join(", "));
        }
    }
    text
}

#[test]
fn files_of_a_room_use_each_other_in_one_direction() {
    none(check(&project_files(), KNOWN));
}

/// `cargo test --test tidy map -- --nocapture` prints it.
#[test]
#[allow(clippy::print_stdout, reason = "the map is there to be looked at")]
fn map_of_rooms_arrows_and_circles() {
    let map = map(&project_files());
    println!("\n{map}");
    for (room, _) in crate::ROOMS {
        assert!(map.lines().any(|line| line.split(' ').next() == Some(room)), "no line for {room}");
    }
}

#[test]
fn circles_of_files_are_found() {
    let room = |b: &'static str| {
        [
            File::new("src/tree/mod.rs", "mod a;\nmod b;\nmod c;\npub use c::C;"),
            File::new("src/tree/a.rs", "use super::b::B; pub struct A(B);"),
            File::new("src/tree/b.rs", b),
            File::new("src/tree/c.rs", "use super::a::A; pub struct C(A);"),
            File::new("src/zab/mod.rs", "use crate::tree::C;"),
        ]
    };
    let apart = "pub struct B;";
    let pair = "use super::a::A; pub struct B;";
    let three = "use super::C; pub struct B;";
    none(check(&room(apart), &[]));
    one(check(&room(pair), &[]), "src/tree/a.rs -> src/tree/b.rs -> src/tree/a.rs");
    let way = "src/tree/a.rs -> src/tree/b.rs -> src/tree/c.rs -> src/tree/a.rs";
    one(check(&room(three), &[]), way);
    let known: &[&[&str]] = &[&["src/tree/a.rs", "src/tree/b.rs"]];
    none(check(&room(pair), known));
    one(check(&room(three), known), "grew");
    assert_eq!(check(&room(apart), known).len(), 2, "both are in no circle now");
    let map = map(&room(pair));
    assert!(map.contains("tree         4      7      3       1  "), "{map}");
}
