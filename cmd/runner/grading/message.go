package grading

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/mcptest/mcptest-operator/engine/redact"
	"github.com/mcptest/mcptest-operator/engine/report"
)

// maxMessageBytes is how much Kubernetes keeps of a termination message.
const maxMessageBytes = 4096

// Message is the termination message of a run that ended so: one line of JSON, at most 4096 bytes, without secrets.
func Message(result Result, err error, redactor *redact.Redactor) []byte {
	m := struct {
		*Result `json:",omitempty"`
		Error   string `json:"error,omitempty"`
	}{Result: &result}
	if err == nil {
		return marshal(m)
	}
	if result.Rows == 0 {
		m.Result = nil // it never came to a slice
	}
	whole := redactor.String(err.Error())
	for limit := 2048; ; limit /= 2 { // JSON makes up to six bytes of one
		m.Error = report.Cut(whole, limit)
		if line := marshal(m); len(line) <= maxMessageBytes || limit == 0 {
			return line
		}
	}
}

func marshal(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil { // numbers and a string always marshal
		return nil
	}
	return append(data, '\n')
}

// WriteMessage writes a termination message where Kubernetes looks for it. A file that is not there is not made: the
// process was not started by Kubernetes then.
func WriteMessage(path string, message []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing the termination message: %w", err)
	}
	_, err = file.Write(message)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("writing the termination message: %w", err)
	}
	return nil
}
