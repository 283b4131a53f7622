//! Makes templates of objects. Where a value of the chart belongs, the object holds a mark: a word that begins with `HELM-`.

use advisor::object_text;
use serde_json::Value;

/// The namespace of the release.
pub(super) const NAMESPACE: &str = "HELM-namespace";

/// A value of the chart, as it is.
pub(super) fn value(path: &str) -> Value {
    format!("HELM-value-{path}").into()
}

/// A text of the chart.
pub(super) fn quoted(path: &str) -> Value {
    format!("HELM-quoted-{path}").into()
}

/// A list or map of the chart, in the place of a field's value.
pub(super) fn whole(path: &str) -> Value {
    format!("HELM-whole-{path}").into()
}

/// The same; the field is left out if it is empty.
pub(super) fn optional(path: &str) -> Value {
    format!("HELM-optional-{path}").into()
}

/// In a list: the entries of a list of the chart.
pub(super) fn entries(path: &str) -> Value {
    format!("HELM-entries-{path}").into()
}

/// Lines of a template, in the place of the whole line.
pub(super) fn block(name: &str) -> Value {
    format!("HELM-block-{name}").into()
}

/// The objects as one template.
pub(super) fn template(objects: &[Value], blocks: &[(&str, &str)]) -> String {
    let documents: Vec<String> = objects.iter().map(|object| document(object, blocks)).collect();
    documents.join("---\n")
}

/// What is there only under a condition.
pub(super) fn conditional(condition: &str, template: &str) -> String {
    format!("{{{{- if {condition} }}}}\n{template}{{{{- end }}}}\n")
}

fn document(object: &Value, blocks: &[(&str, &str)]) -> String {
    // Braces of alerts are not Helm's.
    let text = object_text::yaml(Some(object)).replace("{{", "{{ \"{{\" }}");
    text.lines().map(|line| expanded(line, blocks)).collect()
}

fn expanded(line: &str, blocks: &[(&str, &str)]) -> String {
    let indent = line.len() - line.trim_start().len();
    let blank = " ".repeat(indent);
    let Some((before, mark)) = line.split_once("HELM-") else { return format!("{line}\n") };
    let key = before.trim();
    let (kind, path) = mark.split_once('-').unwrap_or((mark, ""));
    match kind {
        "value" => format!("{before}{{{{ .Values.{path} }}}}\n"),
        "quoted" => format!("{before}{{{{ .Values.{path} | quote }}}}\n"),
        "whole" => format!("{blank}{key}\n{blank}  {{{{- toYaml .Values.{path} | nindent {} }}}}\n", indent + 2),
        "optional" => format!(
            "{blank}{{{{- with .Values.{path} }}}}\n{blank}{key}\n{blank}  {{{{- toYaml . | nindent {} }}}}\n{blank}{{{{- end }}}}\n",
            indent + 2
        ),
        "entries" => {
            format!(
                "{blank}{{{{- with .Values.{path} }}}}\n{blank}{{{{- toYaml . | nindent {indent} }}}}\n{blank}{{{{- end }}}}\n"
            )
        }
        "block" => {
            let lines = blocks.iter().find(|(name, _)| *name == path).map_or("", |(_, lines)| lines);
            lines.lines().map(|line| format!("{blank}{line}\n")).collect()
        }
        // The namespace: alone, or in a text.
        _ if mark == "namespace" && (key.ends_with(':') || key == "-") => {
            format!("{before}{{{{ .Release.Namespace | quote }}}}\n")
        }
        _ => format!("{}\n", line.replace(NAMESPACE, "{{ .Release.Namespace }}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn marks_become_what_helm_puts_in() {
        let object = json!({
            "a": value("replicas"),
            "b": {"c": optional("image.pullSecrets"), "d": whole("resources")},
            "e": ["x", entries("extraArgs")],
            "f": NAMESPACE,
            "g": format!("it.{NAMESPACE}.svc"),
            "h": block("lines"),
            "i": "{{ $labels.profile }}",
            "j": quoted("name"),
        });
        let expected = r#"a: {{ .Values.replicas }}
b:
  {{- with .Values.image.pullSecrets }}
  c:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  d:
    {{- toYaml .Values.resources | nindent 4 }}
e:
- x
{{- with .Values.extraArgs }}
{{- toYaml . | nindent 0 }}
{{- end }}
f: {{ .Release.Namespace | quote }}
g: it.{{ .Release.Namespace }}.svc
{{- if .Values.h }}
h: 1
{{- end }}
i: "{{ "{{" }} $labels.profile }}"
j: {{ .Values.name | quote }}
"#;
        assert_eq!(template(&[object], &[("lines", "{{- if .Values.h }}\nh: 1\n{{- end }}")]), expected);
    }
}
