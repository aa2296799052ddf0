//! The policies of a `logback.xml` by which files are renamed: by size, by date, or both.

use super::log_output::{Dates, NamePart, OLDER_MAX, Period, Rolling, size};
use super::logback_xml::{Element, Variables};

/// The size of files that are to be renamed by a date that is not understood.
const BY_DATE_SIZE: u64 = 256 << 20;
/// What a name ends with if logback packs the file.
const PACKED: [&str; 3] = [".gz", ".zip", ".xz"];

/// What the policies of a rolling file say.
#[derive(Default)]
pub(super) struct Window {
    is_window: bool,
    is_by_date: bool,
    pattern: Option<String>,
    min: Option<u32>,
    max: Option<u32>,
    /// Whether there is a limit, and which.
    size: (bool, Option<u64>),
    cap: Option<u64>,
}

impl Window {
    /// Reads a rolling or a triggering policy.
    ///
    /// # Errors
    /// Those of a variable.
    pub fn read(
        &mut self,
        variables: &Variables<'_>,
        element: &Element,
        name: &str,
        left_out: &mut Vec<String>,
    ) -> Result<(), String> {
        let class = element.attribute("class").unwrap_or_default();
        let class = variables.substitute(class.trim())?;
        match class.rsplit('.').next().unwrap_or_default() {
            "FixedWindowRollingPolicy" => self.is_window = true,
            "SizeBasedTriggeringPolicy" => self.size.0 = true,
            "SizeAndTimeBasedRollingPolicy" | "TimeBasedRollingPolicy" => self.is_by_date = true,
            class => left_out.push(format!("policy {class} of {name}")),
        }
        for child in &element.children {
            let text = variables.substitute(child.text.trim())?;
            let number = || text.parse::<u32>().ok();
            let is_read = match child.name.as_str() {
                "filenamepattern" => {
                    self.pattern = Some(text.clone());
                    true
                }
                "minindex" => number().map(|number| self.min = Some(number)).is_some(),
                "maxindex" | "maxhistory" => {
                    number().map(|number| self.max = Some(number)).is_some()
                }
                "maxfilesize" => size(&text).map(|size| self.size.1 = Some(size)).is_some(),
                "totalsizecap" => size(&text).map(|size| self.cap = Some(size)).is_some(),
                // The size of files that have dates as well.
                "timebasedfilenamingandtriggeringpolicy" => {
                    self.read_inner(variables, child, name, left_out)?;
                    true
                }
                "checkincrement" | "parent" => true,
                _ => false,
            };
            if !is_read {
                left_out.push(format!("{}={text} of {name}", child.name));
            }
        }
        Ok(())
    }

    fn read_inner(
        &mut self,
        variables: &Variables<'_>,
        element: &Element,
        name: &str,
        left_out: &mut Vec<String>,
    ) -> Result<(), String> {
        for child in &element.children {
            let text = variables.substitute(child.text.trim())?;
            match (child.name.as_str(), size(&text)) {
                ("maxfilesize", Some(bytes)) => self.size.1 = Some(bytes),
                (other, _) => left_out.push(format!("{other}={text} of {name}")),
            }
        }
        Ok(())
    }

    /// The name of a file whose appender gives a pattern alone: without dates, numbers and the marks before them.
    pub fn name(&self) -> Option<String> {
        let mut name = String::new();
        let mut rest = self.pattern.as_deref()?;
        while let Some((before, after)) = rest.split_once('%') {
            name.push_str(before.trim_end_matches(['.', '-', '_']));
            let after = after.get(1..).unwrap_or_default();
            rest = match after.strip_prefix('{').and_then(|inside| inside.split_once('}')) {
                Some((_, after)) => after,
                None => after,
            };
        }
        name.push_str(rest);
        let bare = PACKED.into_iter().find_map(|suffix| name.strip_suffix(suffix));
        Some(bare.unwrap_or(&name).to_owned())
    }

    /// Defaults as in logback 1.3.15: 10 MB, numbers 1 to 7.
    ///
    /// * `path`: of the file that grows. `is_named`: the appender names it.
    pub fn rolling(
        &self,
        path: &str,
        is_named: bool,
        name: &str,
        left_out: &mut Vec<String>,
    ) -> Option<Rolling> {
        let pattern = self.pattern.as_deref().unwrap_or_default();
        if self.is_by_date {
            return Some(self.by_date(path, is_named, name, left_out));
        }
        if !self.is_window && !self.size.0 {
            return None;
        }
        let size = self.size.1.unwrap_or(10 << 20);
        let (first, last) = (self.min.unwrap_or(1), self.max.unwrap_or(7));
        let wanted = (last.saturating_add(1)).saturating_sub(first);
        if wanted > OLDER_MAX {
            left_out.push(format!("maxIndex={last} of {name}: {OLDER_MAX} older files are kept"));
        }
        let mut rolling = Rolling::beside(path.as_ref(), size, wanted.min(OLDER_MAX));
        let plain = unpacked(pattern, name, left_out);
        match plain.split_once("%i") {
            Some((before, after)) if !before.contains('%') && !after.contains('%') => {
                (rolling.first, rolling.older) = (first, (before.to_owned(), after.to_owned()));
            }
            _ => left_out.push(format!("fileNamePattern={pattern} of {name}")),
        }
        Some(rolling)
    }

    fn by_date(
        &self,
        path: &str,
        is_named: bool,
        name: &str,
        left_out: &mut Vec<String>,
    ) -> Rolling {
        let pattern = self.pattern.as_deref().unwrap_or_default();
        let plain = PACKED.into_iter().find_map(|suffix| pattern.strip_suffix(suffix));
        let Some((name_parts, format, period)) = dated_name(plain.unwrap_or(pattern)) else {
            left_out.push(format!("dates of {name}: its file is renamed by size"));
            let size = self.size.1.unwrap_or(BY_DATE_SIZE);
            let by_cap = self.cap.map(|cap| u32::try_from(cap / size).unwrap_or(OLDER_MAX));
            let kept = by_cap.or(self.max.filter(|max| *max > 0)).unwrap_or(OLDER_MAX);
            return Rolling::beside(path.as_ref(), size, kept.min(OLDER_MAX));
        };
        let _plain = unpacked(pattern, name, left_out);
        if !is_named {
            left_out.push(format!("date in the name of {name}'s newest file, which is {path}"));
        }
        let has_numbers = name_parts.contains(&NamePart::Number);
        if self.size.1.is_some() && !has_numbers {
            left_out.push(format!("maxFileSize of {name}, since its fileNamePattern has no %i"));
        }
        let size = self.size.1.filter(|_| has_numbers).unwrap_or(u64::MAX);
        let dates = Dates {
            name: name_parts,
            format,
            period,
            periods_kept: self.max.unwrap_or(0),
            cap_bytes: self.cap,
        };
        Rolling { dates: Some(dates), ..Rolling::beside(path.as_ref(), size, 0) }
    }
}

/// A pattern without the suffix that has logback pack older files.
fn unpacked<'p>(pattern: &'p str, name: &str, left_out: &mut Vec<String>) -> &'p str {
    let plain = PACKED.into_iter().find_map(|suffix| pattern.strip_suffix(suffix));
    if plain.is_some() {
        left_out.push(format!("packing of {name}'s older files"));
    }
    plain.unwrap_or(pattern)
}

/// The parts of a name, the form of its date for `strftime`, and how long a period is; `None`: it has no date, more than one, one whose texts
/// do not sort as their times do, or one that is the name of a folder.
fn dated_name(pattern: &str) -> Option<(Vec<NamePart>, String, Period)> {
    let (mut parts, mut date) = (Vec::new(), None);
    let mut rest = pattern;
    while let Some((text, after)) = rest.split_once('%') {
        if !text.is_empty() {
            parts.push(NamePart::Text(text.to_owned()));
        }
        if let Some(after) = after.strip_prefix('i') {
            parts.push(NamePart::Number);
            rest = after;
            continue;
        }
        let after = after.strip_prefix('d')?;
        let (format, after) = match after.strip_prefix('{') {
            Some(inside) => inside.split_once('}')?,
            None => ("yyyy-MM-dd", after),
        };
        if date.replace(form_of_date(format)?).is_some() {
            return None;
        }
        parts.push(NamePart::Date);
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(NamePart::Text(rest.to_owned()));
    }
    let at = parts.iter().position(|part| !matches!(part, NamePart::Text(_)))?;
    let is_folder = |part: &NamePart| matches!(part, NamePart::Text(text) if text.contains('/'));
    let numbers = parts.iter().filter(|part| **part == NamePart::Number).count();
    let (format, period) = date?;
    (!parts[at..].iter().any(is_folder) && numbers < 2).then_some((parts, format, period))
}

/// Java's letters of a date, each with those of `strftime`, in the order in which they may stand.
const LETTERS: [(&str, &str, Period); 5] = [
    ("yyyy", "%Y", Period::Year),
    ("MM", "%m", Period::Month),
    ("dd", "%d", Period::Day),
    ("HH", "%H", Period::Hour),
    ("mm", "%M", Period::Minute),
];

fn form_of_date(format: &str) -> Option<(String, Period)> {
    let (mut form, mut last, mut rest) = (String::new(), None, format);
    let mut letters = LETTERS.into_iter();
    while let Some(first) = rest.chars().next() {
        if first.is_ascii_alphabetic() {
            let (java, ours, period) = letters.next()?;
            rest = rest.strip_prefix(java)?;
            // Another letter of the same kind would be another form.
            rest = Some(rest).filter(|rest| !rest.starts_with(&java[..1]))?;
            form.push_str(ours);
            last = Some(period);
        } else if first.is_ascii_digit() || ['/', '%', '\'', ',', '{'].contains(&first) {
            return None;
        } else {
            form.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    Some((form, last?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_if_their_texts_sort_as_their_times_do() {
        let of = |format: &str| form_of_date(format).map(|(form, _)| form);
        assert_eq!(of("yyyy-MM-dd"), Some("%Y-%m-%d".to_owned()));
        assert_eq!(form_of_date("yyyyMMdd_HH"), Some(("%Y%m%d_%H".to_owned(), Period::Hour)));
        assert_eq!(form_of_date("yyyy-MM"), Some(("%Y-%m".to_owned(), Period::Month)));
        for strange in
            ["dd-MM-yyyy", "yyyy-ww", "yyyy/MM/dd", "yyyy-MM-dd, aux", "", "-", "yyyyy", "yyyy'T'"]
        {
            assert_eq!(of(strange), None, "{strange}");
        }
    }

    #[test]
    fn names_have_one_date_in_their_last_part() {
        let parts = |pattern: &str| dated_name(pattern).map(|(parts, ..)| parts);
        let text = |text: &str| NamePart::Text(text.to_owned());
        assert_eq!(
            parts("/l/zk-%d{yyyy-MM}.%i.log"),
            Some(vec![text("/l/zk-"), NamePart::Date, text("."), NamePart::Number, text(".log")])
        );
        assert_eq!(parts("%d"), Some(vec![NamePart::Date]));
        for strange in ["/l/zk.%i.log", "/l/%d/zk.log", "%d.%d", "%d.%i.%i", "%d{yyyy", "%x"] {
            assert_eq!(parts(strange), None, "{strange}");
        }
    }
}
