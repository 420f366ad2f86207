package output

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcptest/mcptest-operator/engine/report"
)

func TestTryingTheOutputFileLeavesItAsItWas(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "old.json")
	if err := os.WriteFile(old, []byte("yesterday's report"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{old, filepath.Join(dir, "new.json")} {
		o := Options{Format: report.DefaultFormat, File: path}
		if err := o.Complete(); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if data, err := os.ReadFile(old); err != nil || string(data) != "yesterday's report" {
		t.Errorf("the old report is %q now, error %v", data, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%d files are there, want 1, error %v", len(entries), err)
	}
	if err := (&Options{Format: report.DefaultFormat, File: dir}).Complete(); err == nil {
		t.Error("a directory is taken for a file")
	}
}
