// Command chart reads the objects of a chart from its input, and fails if one has a field that Kubernetes does not
// know or a value that it does not take.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

var kinds = map[string]func() any{
	"apps/v1 StatefulSet":           func() any { return new(apps.StatefulSet) },
	"v1 Service":                    func() any { return new(core.Service) },
	"v1 ConfigMap":                  func() any { return new(core.ConfigMap) },
	"policy/v1 PodDisruptionBudget": func() any { return new(policy.PodDisruptionBudget) },
}

func main() {
	if err := check(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func check(r io.Reader) error {
	all, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	for _, text := range bytes.Split(all, []byte("\n---\n")) {
		var of struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(text, &of); err != nil {
			return err
		}
		object := kinds[of.APIVersion+" "+of.Kind]
		if object == nil {
			return fmt.Errorf("%s %s is not known here", of.APIVersion, of.Kind)
		}
		if err := yaml.UnmarshalStrict(text, object()); err != nil {
			return fmt.Errorf("%s: %w", of.Kind, err)
		}
		fmt.Println(of.Kind)
	}
	return nil
}
