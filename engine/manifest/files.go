package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcptest/mcptest-operator/engine/convert"
)

// Limits of what is read.
const (
	// MaxFileBytes bounds one file.
	MaxFileBytes = convert.MaxFileBytes
	// maxTotalBytes bounds all files together.
	maxTotalBytes = 128 << 20
	// maxFiles bounds how many files are read.
	maxFiles = 10000
)

// Stdin is the path that stands for standard input, and stdinName what its problems are told by.
const (
	Stdin     = "-"
	stdinName = "<stdin>"
)

// source is a file that was read.
type source struct {
	name string
	data []byte
	// found is set for a file that a directory holds, and that nobody named: it may be none of ours.
	found bool
}

// reader reads files and gathers what went wrong.
type reader struct {
	sources  []source
	problems Problems
	seen     map[string]bool
	total    int64
}

// readAll reads files, directories (all manifests in them, sorted, those of sub-directories too) and "-".
func readAll(paths []string, stdin io.Reader) ([]source, Problems) {
	r := &reader{seen: make(map[string]bool)}
	for _, path := range paths {
		if path == Stdin {
			r.stdin(stdin)
			continue
		}
		info, err := os.Stat(path)
		switch {
		case err != nil:
			r.fail(path, err)
		case info.IsDir():
			r.directory(path)
		default:
			r.file(path, false)
		}
	}
	return r.sources, r.problems
}

func (r *reader) say(name, message string) {
	r.problems = append(r.problems, Problem{Position: Position{File: name}, Message: message})
}

// fail says why a path could not be read, without naming it twice.
func (r *reader) fail(path string, err error) {
	var pathErr *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.say(path, "no such file or directory")
	case errors.As(err, &pathErr):
		r.say(path, pathErr.Err.Error())
	default:
		r.say(path, err.Error())
	}
}

func (r *reader) stdin(in io.Reader) {
	if r.seen[Stdin] {
		return
	}
	r.seen[Stdin] = true
	if in == nil {
		r.say(stdinName, "there is no standard input; name a file")
		return
	}
	r.add(stdinName, in, false)
}

func (r *reader) directory(root string) {
	found := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			r.fail(path, err)
			return nil
		}
		hidden := strings.HasPrefix(d.Name(), ".") && path != root
		switch {
		case d.IsDir() && hidden:
			return filepath.SkipDir
		case d.IsDir(), hidden, !isManifestName(path):
			return nil
		}
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist): // a link to nothing
			return nil
		case err != nil:
			found++
			r.fail(path, err)
			return nil
		case !info.Mode().IsRegular(): // a link to a directory, a socket
			return nil
		}
		found++
		if len(r.sources) >= maxFiles {
			return fmt.Errorf("more than %d files; name fewer", maxFiles)
		}
		r.file(path, true)
		return nil
	})
	if err != nil {
		r.fail(root, err)
	} else if found == 0 {
		r.say(root, "no .yaml, .yml or .json file is in this directory")
	}
}

func isManifestName(path string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(path)))
}

func (r *reader) file(path string, found bool) {
	key := path
	if abs, err := filepath.Abs(path); err == nil {
		key = abs
	}
	if r.seen[key] {
		return
	}
	r.seen[key] = true
	f, err := os.Open(path)
	if err != nil {
		r.fail(path, err)
		return
	}
	defer f.Close()
	r.add(path, f, found)
}

func (r *reader) add(name string, in io.Reader, found bool) {
	data, err := io.ReadAll(io.LimitReader(in, MaxFileBytes+1))
	r.total += int64(len(data))
	switch {
	case err != nil:
		r.fail(name, err)
	case len(data) > MaxFileBytes:
		r.say(name, "the file is larger than 16 MiB; split it")
	case r.total > maxTotalBytes:
		r.say(name, "the files are larger than 128 MiB together; name fewer")
	default:
		r.sources = append(r.sources, source{name: name, data: data, found: found})
	}
}
