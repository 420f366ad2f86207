package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

const crd = "../../config/crd/bases/eval.mcptest.dev_evals.yaml"

func TestWrittenSchemaIsUpToDate(t *testing.T) {
	in, err := os.ReadFile(crd)
	if err != nil {
		t.Fatal(err)
	}
	want, err := generate(in)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../engine/convert/mcptest/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("schema.json is not what the CRD makes; run make generate")
	}
}

// The words of manifests have no place in the schema of a file that is written otherwise.
func TestDescriptionsAreInTheWordsOfTheFile(t *testing.T) {
	in, err := os.ReadFile(crd)
	if err != nil {
		t.Fatal(err)
	}
	out, err := generate(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"requireEvidence", "scoreRanges", "ifYes", "ifNo", "tieBreak", "responseFrom", "secretRef", "a Rubric", "S-"} {
		if bytes.Contains(out, []byte(word)) {
			t.Errorf("the schema speaks of %s", word)
		}
	}
}

func TestWhatIsNoCRDIsRefused(t *testing.T) {
	for name, test := range map[string]struct{ in, want string }{
		"not YAML":  {"a: [", "reading the CRD"},
		"no schema": {"spec: {versions: [{name: v1}]}", "the CRD has no schema"},
		"no spec":   {"spec: {versions: [{name: v1, schema: {openAPIV3Schema: {}}}]}", "the CRD has no spec"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := generate([]byte(test.in)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("generate = %v, want %s", err, test.want)
			}
		})
	}
}
