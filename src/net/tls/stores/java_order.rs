//! The order in which Java goes through the entries of a JKS: that of a `java.util.Hashtable` of their aliases in lower case.

/// Where each of `aliases` comes in Java's order. Aliases that differ in case alone are one entry, the last.
pub(super) fn jks_order(aliases: &[String]) -> Vec<usize> {
    let lower: Vec<String> = aliases.iter().map(|alias| alias.to_lowercase()).collect();
    let mut table: Vec<Vec<usize>> = vec![Vec::new(); 11]; // A bucket's newest entry is its last.
    let mut count = 0;
    for (index, alias) in lower.iter().enumerate() {
        let len = table.len();
        let bucket = &mut table[slot(alias, len)];
        if let Some(known) = bucket.iter_mut().find(|&&mut known| lower[known] == *alias) {
            *known = index;
            continue;
        }
        // When three quarters full, the table grows to twice its size plus one. Entries are moved
        // bucket by bucket from the last, the newest of each bucket first.
        if count >= len * 3 / 4 {
            let grown = len * 2 + 1;
            let mut moved = vec![Vec::new(); grown];
            for old in table.iter().rev().flat_map(|bucket| bucket.iter().rev()) {
                moved[slot(&lower[*old], grown)].push(*old);
            }
            table = moved;
        }
        let len = table.len();
        table[slot(alias, len)].push(index);
        count += 1;
    }
    table.into_iter().rev().flat_map(|bucket| bucket.into_iter().rev()).collect()
}

/// `(String.hashCode() & 0x7FFFFFFF) % len`.
fn slot(alias: &str, len: usize) -> usize {
    let hash = alias
        .encode_utf16()
        .fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(unit.into()));
    (hash & i32::MAX) as usize % len
}
