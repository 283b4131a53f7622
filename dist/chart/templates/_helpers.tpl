{{- define "virt-advisor-operator.image" -}}
{{- with .Values.image.digest -}}
{{ $.Values.image.repository }}@{{ . }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "virt-advisor-operator.priorityClassName" -}}
{{- if .Values.priorityClass.create -}}
virt-advisor-operator-priority
{{- else -}}
{{ .Values.priorityClass.name }}
{{- end -}}
{{- end -}}
