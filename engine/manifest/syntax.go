package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

var yamlLine = regexp.MustCompile(`^line (\d+): `)

// syntax puts an error of the YAML reader into a problem. The reader often tells the line where the thing began that it
// could not read to its end; the line at which it gave up is found by what it has read by then.
func (p *parser) syntax(data []byte, err error) Problem {
	message, told := cutLine(err)
	out := Problem{Position: Position{File: p.file, Line: told}, Message: "not YAML: " + message}
	upTo := upToError(asYAML(data))
	switch {
	case strings.HasPrefix(message, endInQuotes):
		out.Message += fmt.Sprintf("; is a quote open since line %d?", told)
	case len(upTo) > 0:
		out.Line = countLines(upTo)
		out.Message += syntaxHint(upTo, message)
	}
	return out
}

// cutLine parts an error of the YAML reader from its line, which is 0 when it tells none.
func cutLine(err error) (string, int) {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	m := yamlLine.FindStringSubmatch(message)
	if m == nil {
		return message, 0
	}
	line, err := strconv.Atoi(m[1])
	if err != nil {
		return message, 0
	}
	return message[len(m[0]):], line
}

// endInQuotes is the error for a text in quotes that never ends.
const endInQuotes = "found unexpected end of stream"

// lineReader gives the YAML reader a line at a time, so that it is known how many lines it has seen.
type lineReader struct {
	data  []byte
	given int // bytes
	end   int // of the line that is given
}

func (r *lineReader) Read(to []byte) (int, error) {
	if r.given == len(r.data) {
		return 0, io.EOF
	}
	if r.given == r.end {
		if i := bytes.IndexByte(r.data[r.end:], '\n'); i >= 0 {
			r.end += i + 1
		} else {
			r.end = len(r.data)
		}
	}
	n := copy(to, r.data[r.given:r.end])
	r.given += n
	return n, nil
}

// readYAML reads all documents of some lines, up to the first error.
func readYAML(r *lineReader) error {
	dec := yaml.NewDecoder(r)
	for {
		if err := dec.Decode(&yaml.Node{}); err != nil {
			return err
		}
	}
}

// lookAhead is how many lines behind the one it cannot read the reader may have read, blank lines apart.
const lookAhead = 3

// upToError are the lines up to the one at which they cease to be YAML whatever follows; none when all of them are YAML.
func upToError(data []byte) []byte {
	r := &lineReader{data: data}
	err := readYAML(r)
	if errors.Is(err, io.EOF) {
		return nil
	}
	message, _ := cutLine(err)
	data = data[:r.end]
	for range lookAhead {
		before, _ := cutLast(data)
		for len(before) > 0 {
			rest, last := cutLast(before)
			if !isBlank(last) {
				break
			}
			before = rest
		}
		if len(before) == 0 || !broken(before, message) {
			break
		}
		data = before
	}
	return data
}

// broken tells whether lines cannot be read, whatever follows them: they end in the same error. Lists and mappings in
// brackets that are open where the lines end have an error of their own kind.
func broken(data []byte, message string) bool {
	if strings.Contains(message, "node content") || strings.Contains(message, "',' or") {
		return false
	}
	without, _ := cutLine(readYAML(&lineReader{data: data}))
	return without == message
}

// cutLast parts the last line from those before it.
func cutLast(data []byte) (before, last []byte) {
	at := bytes.LastIndexByte(bytes.TrimSuffix(data, []byte("\n")), '\n') + 1
	return data[:at], data[at:]
}

// countLines counts lines, the last of which need not be ended.
func countLines(data []byte) int {
	return bytes.Count(bytes.TrimSuffix(data, []byte("\n")), []byte("\n")) + 1
}

// isBlank tells whether a line has nothing on it but a comment.
func isBlank(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) == 0 || line[0] == '#'
}

var (
	dashWithoutBlank = regexp.MustCompile(`^\s*-([A-Za-z_]\w*):(\s|$)`)
	colonInText      = regexp.MustCompile(`^[\s-]*[\w.-]+:\s+[^\s"'|>&*!{\[#][^"'{\[#]*:(\s|$)`)
	signInText       = regexp.MustCompile("[:,\\[{-]\\s+[%@`]")
	markInBraces     = regexp.MustCompile(`[{,]\s*[\w.-]+:\s+[^"',{}\[\]]*\?[^"']*[,}]`)
	quoteInText      = regexp.MustCompile(`[:,\[{-]\s+'[^']*\w'\w`)
)

// syntaxHint says what may be wrong with the last line, which cannot be read, and nothing when that is not plain to see.
func syntaxHint(upTo []byte, message string) string {
	before, line := cutLast(upTo)
	if strings.Contains(message, "cannot start any token") && bytes.HasPrefix(bytes.TrimLeft(line, " "), []byte("\t")) {
		return " (YAML is indented with spaces, not tabs)"
	}
	if strings.Contains(message, "cannot start any token") && signInText.Match(line) {
		return "; a text that begins with %, @ or ` needs quotes"
	}
	if since := quoteOpen(before); since > 0 {
		return fmt.Sprintf("; is a quote open since line %d?", since)
	}
	if hint := dashHint(before, line); hint != "" {
		return hint
	}
	switch {
	case strings.HasPrefix(message, "did not find expected ','") && markInBraces.Match(line):
		return "; a text with ? inside {} needs quotes"
	case quoteInText.Match(line):
		return `; write '' for a quote inside '…', or put the text into "…"`
	case strings.HasPrefix(message, "mapping values are not allowed") && colonInText.Match(line):
		return `; a text with ": " in it needs quotes`
	}
	return ""
}

// dashHint tells of a dash without a blank in a line, or in the one before it: what was meant as an item is a key then.
func dashHint(before, line []byte) string {
	_, previous := cutLast(before)
	for i, l := range [][]byte{line, previous} {
		if m := dashWithoutBlank.FindSubmatch(l); m != nil {
			return fmt.Sprintf("; a dash needs a blank after it: write \"- %s:\" in line %d", m[1], countLines(before)+1-i)
		}
	}
	return ""
}

// quoteOpen is the line since which a text in quotes is open where the lines end; 0 when none is.
func quoteOpen(lines []byte) int {
	message, since := cutLine(readYAML(&lineReader{data: lines}))
	if !strings.HasPrefix(message, endInQuotes) {
		return 0
	}
	return since
}
