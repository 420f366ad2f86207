package manifest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// WriteOptions say how manifests are written.
type WriteOptions struct {
	// Namespace is that of all of them; empty: what each says itself.
	Namespace string
}

// Write writes the objects of the set as YAML documents, so that kubectl and Load read what was loaded: ConfigMaps and
// Rubrics before the Evals that name them, fields in the order of the API, without status and what a server fills in.
func (s *Set) Write(w io.Writer, o WriteOptions) error {
	order := []string{KindConfigMap, KindRubric, KindEval, KindEvalRun}
	sorted := slices.Clone(s.ordered)
	slices.SortStableFunc(sorted, func(a, b *document) int {
		return cmp.Compare(slices.Index(order, a.kind), slices.Index(order, b.kind))
	})
	for i, d := range sorted {
		if i > 0 {
			if _, err := io.WriteString(w, "---\n"); err != nil {
				return err
			}
		}
		if err := writeObject(w, cleaned(d, o.Namespace)); err != nil {
			return fmt.Errorf("write %s: %w", d.kind, err)
		}
	}
	return nil
}

// cleaned is a copy of an object as a person would have written it.
func cleaned(d *document, namespace string) any {
	meta := func(in metav1.ObjectMeta) metav1.ObjectMeta {
		out := metav1.ObjectMeta{Name: in.Name, GenerateName: in.GenerateName, Namespace: cmp.Or(namespace, in.Namespace), Labels: in.Labels}
		for name, value := range in.Annotations {
			if name != corev1.LastAppliedConfigAnnotation {
				metav1.SetMetaDataAnnotation(&out, name, value)
			}
		}
		return out
	}
	kind := metav1.TypeMeta{APIVersion: kindTypes[d.kind].apiVersion, Kind: d.kind}
	switch o := d.object.(type) {
	case *v1alpha1.Rubric:
		return &v1alpha1.Rubric{TypeMeta: kind, ObjectMeta: meta(o.ObjectMeta), Spec: o.Spec}
	case *v1alpha1.Eval:
		return &v1alpha1.Eval{TypeMeta: kind, ObjectMeta: meta(o.ObjectMeta), Spec: o.Spec}
	case *v1alpha1.EvalRun:
		return &v1alpha1.EvalRun{TypeMeta: kind, ObjectMeta: meta(o.ObjectMeta), Spec: o.Spec}
	case *corev1.ConfigMap:
		return &corev1.ConfigMap{TypeMeta: kind, ObjectMeta: meta(o.ObjectMeta), Immutable: o.Immutable, Data: o.Data, BinaryData: o.BinaryData}
	}
	return d.object
}

// writeObject writes one document. encoding/json gives the order of the fields.
func writeObject(w io.Writer, object any) error {
	data, err := json.Marshal(object)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	n, err := nodeOf(dec)
	if err != nil {
		return err
	}
	if c := n.Content; len(c) >= 4 && c[0].Value == "kind" && c[2].Value == "apiVersion" { // TypeMeta has it the other way round
		c[0], c[1], c[2], c[3] = c[2], c[3], c[0], c[1]
	}
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	return errors.Join(enc.Encode(n), enc.Close())
}

// nodeOf reads one JSON value as a YAML node.
func nodeOf(dec *json.Decoder) (*yaml.Node, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case json.Delim:
		return collection(dec, v)
	case string:
		return textNode(v), nil
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatBool(v)}, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}, nil
}

// collection reads the rest of a JSON object or array. Keys that are numbers, as those of scoreRanges, go by their value.
func collection(dec *json.Decoder, open json.Delim) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	if open == '{' {
		n.Kind = yaml.MappingNode
	}
	for dec.More() {
		item, err := nodeOf(dec)
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, item)
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if n.Kind == yaml.MappingNode {
		byNumber(n)
	}
	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle
	}
	return n, nil
}

// byNumber sorts the entries of a mapping all of whose keys are numbers.
func byNumber(n *yaml.Node) {
	type numbered struct {
		number     int
		key, value *yaml.Node
	}
	var entries []numbered
	for i := 0; i+1 < len(n.Content); i += 2 {
		number, err := strconv.Atoi(n.Content[i].Value)
		if err != nil {
			return
		}
		entries = append(entries, numbered{number, n.Content[i], n.Content[i+1]})
	}
	slices.SortStableFunc(entries, func(a, b numbered) int { return cmp.Compare(a.number, b.number) })
	for i, e := range entries {
		n.Content[2*i], n.Content[2*i+1] = e.key, e.value
	}
}

// textNode is a text in the style in which every version of YAML reads it as that text: plain, as a block when it has
// lines, else in quotes.
func textNode(text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	switch {
	case isBlock(text):
		n.Style = yaml.LiteralStyle
	case !isPlainText(text):
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// isBlock tells whether a text of several lines looks the same as a block: nothing in it is lost, or has to be escaped.
func isBlock(text string) bool {
	if !strings.Contains(text, "\n") || strings.TrimLeftFunc(text, unicode.IsSpace) != text || strings.HasSuffix(text, "\n\n") {
		return false
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSuffix(line, "\n"); strings.TrimRightFunc(line, unicode.IsSpace) != line {
			return false
		}
	}
	return printable(strings.ReplaceAll(text, "\n", ""))
}

// isPlainText tells whether a text can stand without quotes: words that begin with a letter, and that no version of YAML
// takes for a boolean, a number or null. The encoder quotes what has signs in it that mean something.
func isPlainText(text string) bool {
	if text == "" || !printable(text) {
		return false
	}
	first := []rune(text)[0]
	if !unicode.IsLetter(first) {
		return false
	}
	return !inForms(text, trues) && !inForms(text, falses) && !inForms(text, []string{"null"})
}

// printable tells whether a text can be written in YAML without escapes.
func printable(text string) bool {
	for _, r := range text {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar || r == '\uFEFF' {
			return false
		}
	}
	return true
}
