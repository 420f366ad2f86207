package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	yamlv3 "go.yaml.in/yaml/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// encode writes a CRD as YAML, keys sorted. The branches of a tree stand in one line each: unrolled they are 126
// nodes, which nobody reads one by one and which would be indented by up to 50 columns.
func encode(crd *apiextensionsv1.CustomResourceDefinition) ([]byte, error) {
	raw, err := json.Marshal(crd)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	if len(raw) > MaxBytes {
		return nil, fmt.Errorf("%s is %d bytes of JSON, more than %d: shorten descriptions or rules, those of TreeNode first", crd.Name, len(raw), MaxBytes)
	}
	delete(fields, "status") // the API server's, never the manifest's
	if meta, ok := fields["metadata"].(map[string]any); ok {
		delete(meta, "creationTimestamp")
	}
	text, err := yaml.Marshal(fields)
	if err != nil {
		return nil, err
	}

	var doc yamlv3.Node
	if err := yamlv3.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("reading back what was written: %w", err)
	}
	flowBranches(&doc)
	out := bytes.NewBufferString("---\n")
	enc := yamlv3.NewEncoder(out)
	enc.SetIndent(2)
	if err := enc.Encode(&doc); err != nil {
		return nil, err
	}
	return out.Bytes(), enc.Close()
}

// flowBranches sets the style of each ifYes and ifNo to one line.
func flowBranches(n *yamlv3.Node) {
	if n.Kind != yamlv3.MappingNode {
		for _, c := range n.Content {
			flowBranches(c)
		}
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Value == "ifYes" || key.Value == "ifNo" {
			value.Style = yamlv3.FlowStyle
			continue
		}
		flowBranches(value)
	}
}
