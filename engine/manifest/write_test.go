package manifest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	kyaml "sigs.k8s.io/yaml"
)

func TestWriteIsNormalised(t *testing.T) {
	set, err := Load([]string{Stdin}, strings.NewReader(`
kind: Eval
apiVersion: eval.mcptest.dev/v1alpha1
spec:
  rubric: {ref: r, threshold: 0.80}
  context: ["no", "1e3", "0x1F", "a: b", "# c", "it's", "null", "-", "2026-01-02", "é"]
  response: "two\nlines\n"
  prompt: "yes"
status: {rows: 1}
metadata:
  uid: u
  creationTimestamp: "2026-01-02T03:04:05Z"
  name: e
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}", keep: "on"}
---
apiVersion: eval.mcptest.dev/v1alpha1
kind: Rubric
metadata: {name: r}
spec:
  scale: {unit: {}}
  criteria:
  - scoreRanges: {"10": good, "0": bad, "9": fair}
    description: d
    name: c
`))
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := set.Write(&got, WriteOptions{Namespace: "team"}); err != nil {
		t.Fatal(err)
	}
	const want = `apiVersion: eval.mcptest.dev/v1alpha1
kind: Rubric
metadata:
  name: r
  namespace: team
spec:
  scale:
    unit: {}
  criteria:
    - name: c
      description: d
      scoreRanges:
        "0": bad
        "9": fair
        "10": good
---
apiVersion: eval.mcptest.dev/v1alpha1
kind: Eval
metadata:
  name: e
  namespace: team
  annotations:
    keep: "on"
spec:
  prompt: "yes"
  response: |
    two
    lines
  context:
    - "no"
    - "1e3"
    - "0x1F"
    - 'a: b'
    - "# c"
    - it's
    - "null"
    - "-"
    - "2026-01-02"
    - é
  rubric:
    ref: r
    threshold: 0.8
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("manifests (-want +got):\n%s", diff)
	}
}

func FuzzWrittenTextIsRead(f *testing.F) {
	for _, text := range []string{
		"yes", "Off", "~", "", "a\nb", "a\n\nb\n", "a\n", "a\n\n", "\na", " a", "a ", "a \nb", "a\n b", "1:30", "0o7", ".inf", "a\tb", "a\r\nb", "\x00", "\u0085", "\u2028a\nb",
		"\ufeff", "a: b", "- a", "a #b", "{a", "%a", "@a", "---", "...", "a\n---\nb", "a\n...\n", "é\U0001F600", "=", "<<", "a:", "true\n", "key: |\n  x",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "?")
		want := corev1.ConfigMap{Data: map[string]string{"text": text}}
		var written bytes.Buffer
		if err := writeObject(&written, &want); err != nil {
			t.Fatalf("write %q: %v", text, err)
		}
		var kubectl corev1.ConfigMap
		if err := kyaml.UnmarshalStrict(written.Bytes(), &kubectl); err != nil {
			t.Fatalf("kubectl cannot read %q: %v\n%s", text, err, written.String())
		}
		var core struct{ Data map[string]string }
		if err := yaml.Unmarshal(written.Bytes(), &core); err != nil {
			t.Fatalf("YAML 1.2 cannot read %q: %v\n%s", text, err, written.String())
		}
		if kubectl.Data["text"] != text || core.Data["text"] != text {
			t.Errorf("%q is read as %q by kubectl and as %q by YAML 1.2:\n%s", text, kubectl.Data["text"], core.Data["text"], written.String())
		}
	})
}
