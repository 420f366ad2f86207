package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const crd = "---\nkind: CustomResourceDefinition\nmetadata:\n  annotations:\n    a: b\n  name: c\n"

func TestACRDBecomesATemplateThatIsKept(t *testing.T) {
	got, err := crdTemplate(crd)
	if err != nil {
		t.Fatal(err)
	}
	want := generated + "{{- if .Values.crds.install }}\nkind: CustomResourceDefinition\nmetadata:\n  annotations:\n" +
		"    helm.sh/resource-policy: keep\n    a: b\n  name: c\n{{- end }}\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("template (-want +got):\n%s", diff)
	}
}

func TestWhatIsNoTemplate(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"braces that Helm would read": {crd + "x: '{{'\n", "which Helm would take for a template"},
		"no annotations":              {"kind: CustomResourceDefinition\n", "want one list of annotations"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := crdTemplate(tc.in); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestRulesOfARole(t *testing.T) {
	role := func(kind, resource string) string {
		return "kind: " + kind + "\nmetadata: {name: a}\nrules:\n- apiGroups: [\"\"]\n  resources: [" + resource + "]\n  verbs: [get]\n"
	}
	tests := map[string]struct{ in, want, refusal string }{
		"a ClusterRole":           {in: role("ClusterRole", "pods"), want: generated + "- apiGroups:\n  - \"\"\n  resources:\n  - pods\n  verbs:\n  - get\n"},
		"a Role":                  {in: role("Role", "pods"), refusal: "want one ClusterRole"},
		"no rules":                {in: "kind: ClusterRole\n", refusal: "want one ClusterRole with rules"},
		"Secrets of all teams":    {in: role("ClusterRole", "secrets"), refusal: "may not grant secrets"},
		"everything of all teams": {in: role("ClusterRole", `"*"`), refusal: "may not grant *"},
		"no YAML":                 {in: "{", refusal: "reading the ClusterRole"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := roleRules([]byte(tc.in))
			if tc.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refusal) {
					t.Errorf("error %v, want one with %q", err, tc.refusal)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("roleRules: error %v, rules\n%s\nwant\n%s", err, got, tc.want)
			}
		})
	}
}

func TestTheChartHoldsWhatConfigHoldsAndNothingElse(t *testing.T) {
	config, chart := t.TempDir(), t.TempDir()
	files := map[string]string{
		filepath.Join(config, "crd", "bases", "new.yaml"):      crd,
		filepath.Join(config, "rbac", "role.yaml"):             "kind: ClusterRole\nrules:\n- {apiGroups: [\"\"], resources: [pods], verbs: [get]}\n",
		filepath.Join(chart, "templates", "crds", "gone.yaml"): "a kind that is gone",
	}
	for path, content := range files {
		if err := write(path, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(config, chart); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, dir := range []string{"templates/crds", "files"} {
		entries, err := os.ReadDir(filepath.Join(chart, dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			got = append(got, dir+"/"+e.Name())
		}
	}
	if diff := cmp.Diff([]string{"templates/crds/new.yaml", "files/rules.yaml"}, got); diff != "" {
		t.Errorf("files of the chart (-want +got):\n%s", diff)
	}
}
