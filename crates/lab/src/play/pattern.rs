//! Patterns of names. By hand: crates for globs match paths, and give more characters a meaning than `*` and `?`.

/// Whether a name matches a pattern, in which `*` is any text and `?` is any character.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut matched) = (0, 0);
    // The last `*`, and how much of the name was matched before the text that it stands for ended.
    let mut star: Option<(usize, usize)> = None;
    while matched < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, matched));
                at += 1;
            }
            Some(c) if *c == '?' || *c == name[matched] => (at, matched) = (at + 1, matched + 1),
            _ => match star {
                Some((before, until)) => {
                    star = Some((before, until + 1));
                    (at, matched) = (before + 1, until + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_a_shell() {
        for (pattern, name, expected) in [
            ("vm-0*", "vm-001", true),
            ("vm-0*", "vm-101", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*a*b", "xxaxxab", true),
            ("*a*b", "xxaxxa", false),
            ("vm", "vm-1", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
