//! Problems of one cause as one line, for `oxkeeper config check`.

use crate::config::{Problem, SettingPlace};

/// Settings of one file with one fault.
struct Group<'a> {
    file: &'a str,
    /// The problem's text without the setting at its begin.
    fault: &'a str,
    problems: Vec<(u32, &'a str)>,
}

/// The lines to show: settings of one file with the same fault are one line, at the place of the first.
pub fn lines(problems: &[Problem]) -> Vec<String> {
    let mut groups: Vec<Result<Group<'_>, &Problem>> = Vec::new();
    for problem in problems {
        let parts = problem.text.split_once(' ');
        let (SettingPlace::Line { file, line }, Some((setting, fault))) = (&problem.place, parts)
        else {
            groups.push(Err(problem));
            continue;
        };
        let same = groups.iter_mut().filter_map(|group| group.as_mut().ok());
        match same.into_iter().find(|group| (group.file, group.fault) == (file, fault)) {
            Some(group) => group.problems.push((*line, setting)),
            None => groups.push(Ok(Group { file, fault, problems: vec![(*line, setting)] })),
        }
    }
    groups
        .into_iter()
        .map(|group| group.map_or_else(ToString::to_string, |group| group.line()))
        .collect()
}

impl Group<'_> {
    fn line(&self) -> String {
        let Self { file, fault, problems } = self;
        let (place, text) = match problems[..] {
            [(line, setting)] => (format!("{file}:{line}"), format!("{setting} {fault}")),
            _ => {
                let settings: Vec<&str> = problems.iter().map(|(_, setting)| *setting).collect();
                let settings = settings.join(", ");
                let text = match settings.ends_with(':') {
                    true => format!("{} {fault}", settings.replace(":,", ",")),
                    false => format!("each of {settings} {fault}"),
                };
                (format!("{file}, {}", runs(problems)), text)
            }
        };
        Problem { place: SettingPlace::File(place), text }.to_string()
    }
}

/// `lines 3, 5 to 7`.
fn runs(problems: &[(u32, &str)]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &(line, _) in problems {
        match runs.last_mut() {
            Some((_, last)) if line == *last || line == last.saturating_add(1) => *last = line,
            _ => runs.push((line, line)),
        }
    }
    let shown = runs.iter().map(|&(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first} to {last}"),
    });
    format!("lines {}", shown.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_of_one_cause_are_one_line() {
        let problem = |file: &str, line, text: &str| Problem {
            place: SettingPlace::Line { file: file.to_owned(), line },
            text: text.to_owned(),
        };
        let whole =
            Problem { place: SettingPlace::File("z".into()), text: "clientPort is not set".into() };
        let problems = [
            problem("z", 3, "server.1 is set beside d; move it there"),
            problem("z", 4, "server.2 is set beside d; move it there"),
            problem("y", 5, "server.3 is set beside d; move it there"),
            problem("z", 6, "tickTime=x is not a number"),
            problem("z", 8, "k=a: no such file"),
            problem("z", 9, "l=b: no such file"),
            problem("z", 7, "server.4 is set beside d; move it there"),
            whole,
        ];
        assert_eq!(
            lines(&problems),
            [
                "z, lines 3 to 4, 7: each of server.1, server.2, server.4 is set beside d; move it there",
                "y:5: server.3 is set beside d; move it there",
                "z:6: tickTime=x is not a number",
                "z, lines 8 to 9: k=a, l=b: no such file",
                "z: clientPort is not set",
            ]
        );
        assert!(lines(&[]).is_empty());
    }
}
