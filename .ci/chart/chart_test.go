// Package chart checks what the chart makes: that no object has a field that Kubernetes does not know, and that values
// arrive. It is a module of its own, as mailgate needs neither Helm nor Kubernetes.
package chart

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

var kinds = map[string]func() any{
	"apps/v1 StatefulSet":                     func() any { return new(apps.StatefulSet) },
	"v1 Service":                              func() any { return new(core.Service) },
	"v1 ConfigMap":                            func() any { return new(core.ConfigMap) },
	"policy/v1 PodDisruptionBudget":           func() any { return new(policy.PodDisruptionBudget) },
	"networking.k8s.io/v1 NetworkPolicy":      func() any { return new(networking.NetworkPolicy) },
	"monitoring.coreos.com/v1 ServiceMonitor": func() any { return new(monitoring.ServiceMonitor) },
	"monitoring.coreos.com/v1 PrometheusRule": func() any { return new(monitoring.PrometheusRule) },
}

// render returns the chart's objects with the values of a file, by kind and name, and the notes.
func render(values string) (objects map[string]any, notes string, err error) {
	chart, err := loader.Load("../../deploy/chart")
	if err != nil {
		return nil, "", err
	}
	read, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		return nil, "", err
	}
	all, err := chartutil.ToRenderValues(chart, read, chartutil.ReleaseOptions{Name: "mailgate", Namespace: "mail"}, nil)
	if err != nil {
		return nil, "", err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return nil, "", err
	}
	objects = map[string]any{}
	for name, content := range files {
		if strings.HasSuffix(name, "NOTES.txt") {
			notes = content
			continue
		}
		for text := range bytes.SplitSeq([]byte(content), []byte("\n---\n")) {
			var of struct {
				APIVersion, Kind string
				Metadata         struct{ Name string }
			}
			if err := yaml.Unmarshal(text, &of); err != nil {
				return nil, "", err
			}
			if of.Kind == "" {
				continue // it is not asked for
			}
			object := kinds[of.APIVersion+" "+of.Kind]()
			if err := yaml.UnmarshalStrict(text, object); err != nil {
				return nil, "", err
			}
			objects[of.Kind+" "+of.Metadata.Name] = object
		}
	}
	return objects, notes, nil
}

const required = "image: { repository: registry.acme.example/mailgate }\nsettings: { from: Acme <no-reply@acme.example> }\n"

func TestChart_OneNode_IsWhole(t *testing.T) {
	objects, notes, err := render(required)
	if names := slices.Sorted(maps.Keys(objects)); err != nil || strings.Join(names, ", ") != "Service mailgate, Service mailgate-nodes, StatefulSet mailgate" {
		t.Error(names, err)
	}
	if !strings.Contains(notes, "http://mailgate.mail.") {
		t.Errorf("%s", notes)
	}
}

// Each value arrives where Kubernetes reads it. A large number is written in full, as a setting of 1e+06 prevents the start.
func TestChart_EachValue_Arrives(t *testing.T) {
	objects, _, err := render(`
image: { repository: registry.acme.example/mailgate }
nodes: 3
rules: "rules: []"
smtp: { enabled: true }
settings: { from: Acme <no-reply@acme.example>, submission_max_bytes: 25000000, smtp_rate: 0.5, fold: false, templates: /etc/mailgate/templates }
extraEnv: [{ name: OTEL_EXPORTER_OTLP_ENDPOINT, value: "http://collector:4318" }]
extraVolumes: [{ name: templates, configMap: { name: mailgate-templates } }]
extraVolumeMounts: [{ name: templates, mountPath: /etc/mailgate/templates }]
imagePullSecrets: [{ name: registry }]
nodeSelector: { disk: ssd }
tolerations: [{ key: mail, operator: Exists }]
affinity: { nodeAffinity: {} }
podAnnotations: { acme.example/team: mail }
monitoring: { enabled: true, labels: { release: prometheus } }
networkPolicy: { enabled: true, clients: [{ podSelector: { matchLabels: { app: web } } }] }
`)
	if err != nil {
		t.Fatal(err)
	}
	pod := objects["StatefulSet mailgate"].(*apps.StatefulSet).Spec.Template
	node := pod.Spec.Containers[0]
	environ := map[string]string{}
	for _, v := range node.Env {
		environ[v.Name] = v.Value
	}
	for name, want := range map[string]string{
		"MAILGATE_SUBMISSION_MAX_BYTES": "25000000", "MAILGATE_SMTP_RATE": "0.5", "MAILGATE_FOLD": "false",
		"MAILGATE_FROM": "Acme <no-reply@acme.example>", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318",
	} {
		if environ[name] != want {
			t.Errorf("%s is %q, want %q", name, environ[name], want)
		}
	}
	if s := pod.Spec; len(s.ImagePullSecrets) != 1 || s.NodeSelector["disk"] != "ssd" || len(s.Tolerations) != 1 || s.Affinity == nil || pod.Annotations["acme.example/team"] != "mail" {
		t.Errorf("the pod is %+v", s)
	}
	if !slices.ContainsFunc(pod.Spec.Volumes, func(v core.Volume) bool { return v.Name == "templates" }) ||
		!slices.ContainsFunc(node.VolumeMounts, func(m core.VolumeMount) bool { return m.MountPath == "/etc/mailgate/templates" }) {
		t.Error("the templates are not mounted")
	}
	if node.StartupProbe == nil || node.LivenessProbe == nil || node.ReadinessProbe == nil {
		t.Error("a probe is missing")
	}

	monitor := objects["ServiceMonitor mailgate"].(*monitoring.ServiceMonitor)
	if monitor.Labels["release"] != "prometheus" {
		t.Errorf("Prometheus does not find the monitor: %v", monitor.Labels)
	}
	for name, once := range map[string]bool{"Service mailgate-nodes": true, "Service mailgate": false} {
		if found := labels.SelectorFromSet(monitor.Spec.Selector.MatchLabels).Matches(labels.Set(objects[name].(*core.Service).Labels)); found != once {
			t.Errorf("%s is scraped: %v", name, found)
		}
	}
	if rule := objects["PrometheusRule mailgate"].(*monitoring.PrometheusRule); len(rule.Spec.Groups) != 2 {
		t.Errorf("the alerts are %+v", rule.Spec)
	}
	ingress := objects["NetworkPolicy mailgate"].(*networking.NetworkPolicy).Spec.Ingress
	if len(ingress) != 2 || len(ingress[0].Ports) != 2 || len(ingress[0].From) != 1 || len(ingress[1].Ports) != 1 || len(ingress[1].From) != 0 {
		t.Errorf("the policy is %+v", ingress)
	}
}

func TestChart_Mistake_IsNamed(t *testing.T) {
	for values, want := range map[string]string{
		"": "settings.from",
		"settings: { from: no-reply@acme.example }": "image.repository",
		required + "node: 3":                        "node",
		required + "extraEnv: { OTEL_EXPORTER_OTLP_ENDPOINT: http://collector:4318 }":       "extraEnv",
		"settings: { from: a@acme.example, smtp_url: smtps://user:password@relay.example }": "smtp_url",
	} {
		if _, _, err := render(values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", values, err)
		}
	}
}
