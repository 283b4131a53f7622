//! Kernel arguments as the machine config daemon and the kernel read them.
//! An entry of `spec.kernelArguments` may contain several arguments: the daemon splits it at blanks outside of double quotes. A pool
//! concatenates the entries of its configs, with repetitions, and the kernel uses the last of several values.

use serde_json::Value;

/// The arguments of one entry.
pub fn split(entry: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    let is_blank_between = move |c: char| {
        is_quoted ^= c == '"';
        c.is_ascii_whitespace() && !is_quoted
    };
    entry.split(is_blank_between).filter(|argument| !argument.is_empty())
}

/// The entries of a config, as they are written.
pub fn entries(config: &Value) -> impl Iterator<Item = &str> {
    config.pointer("/spec/kernelArguments").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// All arguments of a config, in their order.
pub fn of(config: &Value) -> impl Iterator<Item = &str> {
    entries(config).flat_map(split)
}

/// The name of an argument: the part before `=`.
pub fn name(argument: &str) -> &str {
    let argument = argument.trim_matches('"');
    argument.split_once('=').map_or(argument, |(name, _)| name)
}

/// The value that the kernel uses for a name; empty for an argument without a value.
pub fn value<'a>(config: &'a Value, of_name: &str) -> Option<&'a str> {
    let last = of(config).filter(|argument| name(argument) == of_name).last()?;
    Some(last.trim_matches('"').split_once('=').map_or("", |(_, value)| value.trim_matches('"')))
}

/// Whether the kernel parses a value as true.
pub fn is_true(value: &str) -> bool {
    let mut letters = value.chars().map(|c| c.to_ascii_lowercase());
    match letters.next() {
        Some('1' | 'y' | 't') => true,
        Some('o') => letters.next() == Some('n'),
        _ => false,
    }
}

/// The entries without the unwanted arguments. Other entries stay as they are written, and empty ones are dropped.
pub fn without(config: &Value, unwanted: impl Fn(&str) -> bool) -> Vec<String> {
    let kept = |entry: &str| match split(entry).any(&unwanted) {
        false => entry.to_owned(),
        true => split(entry).filter(|argument| !unwanted(argument)).collect::<Vec<_>>().join(" "),
    };
    entries(config)
        .map(|entry| (entry, kept(entry)))
        .filter(|(entry, kept)| kept == entry || !kept.is_empty())
        .map(|(_, kept)| kept)
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(entries: &[&str]) -> Value {
        json!({"spec": {"kernelArguments": entries}})
    }

    #[test]
    fn an_entry_is_split_at_blanks_outside_of_quotes() {
        for (entry, expected) in [
            ("psi=1", vec!["psi=1"]),
            ("audit=0 psi=1", vec!["audit=0", "psi=1"]),
            ("  a \t b\n", vec!["a", "b"]),
            ("a=\"x y\" psi=0", vec!["a=\"x y\"", "psi=0"]),
            ("\"a b\" c", vec!["\"a b\"", "c"]),
            ("open=\"x psi=1", vec!["open=\"x psi=1"]),
            ("", vec![]),
            ("   ", vec![]),
        ] {
            assert_eq!(split(entry).collect::<Vec<_>>(), expected, "{entry:?}");
        }
    }

    /// Real operators, fifth in rank: an entry with several arguments was taken for one.
    #[test]
    fn the_last_value_counts_wherever_it_stands() {
        for (entries, expected) in [
            (&["psi=1"][..], Some("1")),
            (&["psi=1", "psi=0"], Some("0")),
            (&["psi=0", "quiet", "psi=1"], Some("1")),
            (&["psi=0", "audit=0 psi=1"], Some("1")),
            (&["psi=1 psi=0"], Some("0")),
            (&["psi=0 audit=0"], Some("0")),
            (&["psi"], Some("")),
            (&["\"psi=1\""], Some("1")),
            (&["psi=\"1\""], Some("1")),
            (&["x=\"psi=1 y\""], None),
            (&["psi_cgroups=1"], None),
            (&[], None),
        ] {
            assert_eq!(value(&config(entries), "psi"), expected, "{entries:?}");
        }
        assert_eq!(value(&json!({"spec": {"kernelArguments": null}}), "psi"), None);
    }

    #[test]
    fn the_kernel_knows_several_words_for_true() {
        for (value, expected) in [
            ("1", true),
            ("y", true),
            ("Yes", true),
            ("on", true),
            ("true", true),
            ("0", false),
            ("off", false),
            ("", false),
            ("n", false),
        ] {
            assert_eq!(is_true(value), expected, "{value:?}");
        }
    }

    #[test]
    fn nothing_but_the_unwanted_goes() {
        let is_psi = |argument: &str| name(argument) == "psi";
        for (before, after) in [
            (&["quiet", "psi=0"][..], vec!["quiet"]),
            (&["psi=0 audit=0"], vec!["audit=0"]),
            (&["a  b", "c psi=1  d"], vec!["a  b", "c d"]),
            (&["a=\"psi=1 x\""], vec!["a=\"psi=1 x\""]),
            (&["psi=0", "psi=1 psi=0"], vec![]),
            (&[""], vec![""]),
        ] {
            assert_eq!(without(&config(before), is_psi), after, "{before:?}");
        }
    }
}
