//! The text of a configuration: what `/zookeeper/config`, election notifications and dynamic files hold.
//!
//! Names are never resolved here, nor are addresses ever compared by what they resolve to: a name
//! that cannot be resolved today is as valid as any other (ZOOKEEPER-3829 and its family).

use super::fields::{ViewError, number_in, split};
use super::{Member, Rule, View};
use crate::model::ServerId;
use crate::model::properties::{self, Entries};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

impl View {
    /// Reads a text of lines `server.N`, `group.N`, `weight.N` and `version`.
    ///
    /// Several addresses of one member are always accepted: whether a server may have them depends
    /// on its own settings.
    ///
    /// # Errors
    /// [`ViewError`], the first one there is.
    ///
    /// Source: `QuorumPeerConfig.parseDynamicConfig`, `QuorumMaj`, `QuorumHierarchical`, ZooKeeper 3.9.5.
    pub fn parse(text: &str) -> Result<Self, ViewError> {
        Self::from_entries(&properties::parse_text(text)?)
    }

    /// As [`View::parse`], for bytes from a znode, a transaction or another server.
    ///
    /// # Errors
    /// [`ViewError`], the first one there is.
    pub fn from_bytes(text: &[u8]) -> Result<Self, ViewError> {
        Self::parse(std::str::from_utf8(text).map_err(|_| ViewError::Encoding)?)
    }

    /// The voters, each weight other than 1, and `|` between groups: `1 2 | 3 (weight 5)`.
    pub fn voters_text(&self) -> String {
        let Rule::Hierarchical { groups, weights } = &self.rule else {
            return self.voters().map(|id| id.to_string()).collect::<Vec<_>>().join(" ");
        };
        let shown = |id: &ServerId| match weights.get(id) {
            None | Some(1) => id.to_string(),
            Some(weight) => format!("{id} (weight {weight})"),
        };
        let groups = groups.values().map(|ids| ids.iter().map(shown).collect::<Vec<_>>().join(" "));
        groups.collect::<Vec<_>>().join(" | ")
    }

    /// As [`View::parse`], for entries that are parsed already.
    ///
    /// # Errors
    /// [`ViewError`], the first one there is.
    pub fn from_entries(entries: &Entries) -> Result<Self, ViewError> {
        let mut members = BTreeMap::new();
        let mut groups: BTreeMap<i64, BTreeSet<ServerId>> = BTreeMap::new();
        let mut weights = BTreeMap::new();
        let mut version = 0;
        for (key, entry) in entries {
            let (key, value) = (key.as_str(), entry.value.as_str());
            let again = |id| ViewError::Again { key: key.to_owned(), id };
            if key.starts_with("server.") {
                let member = Member::parse(key, value)?;
                if let Some(twin) = members.insert(member.id, member) {
                    return Err(again(twin.id.0));
                }
            } else if key.starts_with("group") {
                let id = number_in(key)?;
                let group = parse_group(key, value)?;
                let shared = group.iter().find(|id| groups.values().any(|g| g.contains(id)));
                if let Some(&id) = shared {
                    return Err(ViewError::Regrouped { key: key.to_owned(), id });
                }
                if groups.insert(id, group).is_some() {
                    return Err(again(id));
                }
            } else if key.starts_with("weight") {
                let id = ServerId(number_in(key)?);
                let weight =
                    value.parse::<i64>().ok().and_then(|weight| u64::try_from(weight).ok());
                let weight = weight.ok_or_else(|| {
                    ViewError::value(key, value, "is not a whole number from 0 on")
                })?;
                if weights.insert(id, weight).is_some() {
                    return Err(again(id.0));
                }
            } else if key == "version" {
                version = i64::from_str_radix(value, 16)
                    .map_err(|_| ViewError::value(key, value, "is not a hexadecimal number"))?;
            } else {
                return Err(ViewError::Key { key: key.to_owned() });
            }
        }
        let view = Self { version, members, rule: Rule::Majority };
        let is_plain = groups.is_empty() && weights.is_empty();
        if !is_plain {
            complete(&view, &groups, &mut weights)?;
        }
        if view.voters().next().is_none() {
            return Err(ViewError::NoVoters);
        }
        if is_plain {
            return Ok(view);
        }
        Ok(Self { rule: Rule::Hierarchical { groups, weights }, ..view })
    }
}

/// Gives voters their default weight, and checks that every voter is in a group and every member of a group has a weight.
fn complete(
    view: &View,
    groups: &BTreeMap<i64, BTreeSet<ServerId>>,
    weights: &mut BTreeMap<ServerId, u64>,
) -> Result<(), ViewError> {
    for id in view.voters() {
        if !groups.values().any(|group| group.contains(&id)) {
            return Err(ViewError::Ungrouped { id });
        }
        weights.entry(id).or_insert(1);
    }
    for (group, ids) in groups {
        if let Some(&id) = ids.iter().find(|id| !weights.contains_key(id)) {
            return Err(ViewError::Weightless { key: format!("group.{group}"), id });
        }
    }
    Ok(())
}

fn parse_group(key: &str, value: &str) -> Result<BTreeSet<ServerId>, ViewError> {
    let mut group = BTreeSet::new();
    for number in split(value, ':') {
        let id = number.parse().map(ServerId);
        let id = id.map_err(|_| ViewError::value(key, value, "is not number:number:..."))?;
        if !group.insert(id) {
            return Err(ViewError::Regrouped { key: key.to_owned(), id });
        }
    }
    Ok(group)
}

impl fmt::Display for View {
    /// As Java prints it, in the order in which its hash maps hold the numbers: rising, as long as they are small.
    ///
    /// Source: `QuorumMaj.toString`, `QuorumHierarchical.toString`, ZooKeeper 3.9.5.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for id in hashed(self.members.keys().map(|id| id.0)) {
            if let Some(member) = self.members.get(&ServerId(id)) {
                writeln!(f, "server.{id}={member}")?;
            }
        }
        if let Rule::Hierarchical { groups, weights } = &self.rule {
            // A group's servers in the order of all that are in groups.
            let grouped = hashed(groups.values().flatten().map(|id| id.0));
            for number in hashed(groups.keys().copied()) {
                let ids = grouped.iter().filter(|&&id| groups[&number].contains(&ServerId(id)));
                let ids: Vec<String> = ids.map(ToString::to_string).collect();
                writeln!(f, "group.{number}={}", ids.join(":"))?;
            }
            for id in hashed(weights.keys().map(|id| id.0)) {
                writeln!(f, "weight.{id}={}", weights[&ServerId(id)])?;
            }
        }
        write!(f, "version={:x}", self.version)
    }
}

/// Numbers in the order of a `HashMap<Long, _>` that grew as they came.
///
/// Those that share a bucket are in rising order; in Java it is the order in which they came.
fn hashed(numbers: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut numbers: Vec<i64> = numbers.collect();
    let mut buckets = 16;
    while buckets / 4 * 3 < numbers.len() {
        buckets *= 2;
    }
    let bucket = |number: i64| {
        let hash = (number ^ (number as u64 >> 32) as i64) as u32;
        (hash ^ hash >> 16) as usize & (buckets - 1)
    };
    numbers.sort_by_key(|&number| (bucket(number), number));
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::golden::bytes_of;

    /// A line of what `Views.java` prints.
    fn outcome(case: &str) -> String {
        let (many, case) = match case.strip_prefix("M!") {
            Some(case) => (true, case),
            None => (false, case),
        };
        let text = String::from_utf8(bytes_of(case)).unwrap();
        match View::parse(&text) {
            Ok(view) if many || view.members.values().all(|member| member.addresses.len() < 2) => {
                let shown = view.to_string();
                // A version below 0 is printed in a form that can't be read again.
                let again = View::parse(&shown);
                assert!(again.as_ref() == Ok(&view) || view.version < 0, "{shown}");
                shown.replace('%', "%25").replace('\n', "%0a")
            }
            _ => "REFUSED".to_owned(),
        }
    }

    // rows: Q-102
    #[test]
    fn every_text_is_read_and_printed_as_java_does() {
        let cases = include_str!("../../../compat-tests/golden/views/cases.txt");
        let expected = include_str!("../../../compat-tests/golden/views/expected.txt");
        assert_eq!(cases.lines().count(), expected.lines().count());
        for (case, expected) in cases.lines().zip(expected.lines()) {
            assert_eq!(outcome(case), expected, "case {case}");
        }
    }

    #[test]
    fn texts_that_java_resolves_by_chance_are_refused() {
        for (text, error) in [
            ("server.1=a:1:2\nserver.01=b:1:2", "server.1 repeats number 1"),
            ("server.1=a:1:2\ngroup.1=1\ngroups.1=2", "groups.1 repeats number 1"),
            (
                "server.1=a:1:2\ngroup.1=1\nweight.1=-1",
                "weight.1=-1 is not a whole number from 0 on",
            ),
            ("server.1=|", "server.1=| is not host:port:port"),
            ("server.1=;", "server.1=; is not host:port:port[:role][;[host:]port]"),
        ] {
            assert_eq!(View::parse(text).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn an_error_names_its_key() {
        let error = |text| View::parse(text).unwrap_err();
        let wrong = error("server.1=a:1:2\nserver.2=a:1");
        assert_eq!(wrong.key().as_deref(), Some("server.2"));
        assert_eq!(wrong.to_string(), "server.2=a:1 is not host:port:port");
        let wrong = error("server.1=a:1:2\nserver.2=a:1:2\ngroup.7=1");
        assert_eq!(wrong.to_string(), "server.2 votes and is in no group");
        assert_eq!(wrong.key().as_deref(), Some("server.2"));
        assert_eq!(error("\\u1"), ViewError::Unicode { line: 1 });
        assert_eq!(error("server.1=a:1:2:observer").key(), None);
    }

    // rows: D-09
    #[test]
    fn voters_are_shown_with_their_groups_and_weights() {
        let three = "server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\n";
        for (rule, shown) in [
            ("", "1 2 3"),
            ("group.1=1:2:3\nweight.3=5", "1 2 3 (weight 5)"),
            ("group.1=1:2\ngroup.2=3\nweight.1=0", "1 (weight 0) 2 | 3"),
        ] {
            assert_eq!(View::parse(&format!("{three}{rule}")).unwrap().voters_text(), shown);
        }
    }
}
