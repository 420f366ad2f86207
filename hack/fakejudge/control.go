package fakejudge

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
)

const (
	controlPrefix   = "/_fakejudge/"
	maxControlBytes = 1 << 20
)

// serveControl serves the counters and the switches, for tests that talk to a
// process. None of it needs a key: the stand-in holds nothing worth one.
func (s *Server) serveControl(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, controlPrefix)
	method := http.MethodPost
	if name == "stats" {
		method = http.MethodGet
	}
	switch name {
	case "stats", "reset", "hold", "release", "rules":
	default:
		controlError(w, http.StatusNotFound, "no such control; write one of stats (GET), reset, hold, release, rules (POST)")
		return
	}
	if r.Method != method {
		w.Header().Set("Allow", method)
		controlError(w, http.StatusMethodNotAllowed, name+" takes "+method)
		return
	}
	switch name {
	case "stats":
		_ = writeJSON(w, http.StatusOK, s.Stats())
		return
	case "reset":
		s.Reset()
	case "release":
		s.Release()
	case "hold":
		if !s.controlHold(w, r) {
			return
		}
	case "rules":
		if !s.controlRules(w, r) {
			return
		}
	}
	_ = writeJSON(w, http.StatusOK, map[string]string{"standIn": Name, "done": name})
}

func (s *Server) controlHold(w http.ResponseWriter, r *http.Request) bool {
	body, ok := controlBody(w, r)
	if !ok {
		return false
	}
	var in struct {
		After *int `json:"after"`
	}
	dec := json.NewDecoder(strings.NewReader(string(body)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil || in.After == nil || *in.After < 0 {
		controlError(w, http.StatusBadRequest, `hold takes {"after": N}: the number of calls, 0 or more, that are still answered`)
		return false
	}
	s.Hold(*in.After)
	return true
}

func (s *Server) controlRules(w http.ResponseWriter, r *http.Request) bool {
	body, ok := controlBody(w, r)
	if !ok {
		return false
	}
	rules, err := ParseRules(body)
	if err == nil {
		err = s.SetRules(rules)
	}
	if err != nil {
		controlError(w, http.StatusBadRequest, err.Error())
		return false
	}
	return true
}

func controlBody(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, err := readBody(w, r, maxControlBytes)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		controlError(w, http.StatusRequestEntityTooLarge, "the body is larger than 1 MiB")
	case err != nil:
		controlError(w, http.StatusBadRequest, err.Error())
	default:
		return body, true
	}
	return nil, false
}

func controlError(w http.ResponseWriter, status int, message string) {
	_ = writeJSON(w, status, map[string]string{"standIn": Name, "error": message})
}
