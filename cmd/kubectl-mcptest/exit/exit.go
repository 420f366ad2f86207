// Package exit holds the exit codes of the command line, and errors that carry one.
package exit

import (
	"errors"
	"fmt"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
)

// The exit codes.
const (
	// OK: every row passed or was deferred.
	OK = 0
	// Failed: a row failed or ended as an error.
	Failed = 1
	// BadInput: nothing was run.
	BadInput = 2
	// NotFinished: the run did not end in time, or was left alone.
	NotFinished = 3
	// BudgetExceeded: the budget ran out before every row was judged.
	BudgetExceeded = 5
	// NothingSelected: no eval or row was chosen.
	NothingSelected = 7
)

// Error is an error with the exit code it ends the program with.
type Error struct {
	Code int
	// Err is what is told; nil when all was said already.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap implements errors.Unwrap.
func (e *Error) Unwrap() error { return e.Err }

// With gives an error an exit code. err may be nil: then nothing more is told.
func With(code int, err error) error { return &Error{Code: code, Err: err} }

// Code is the exit code of an error: its own, else BadInput; OK for nil.
func Code(err error) int {
	var coded *Error
	switch {
	case err == nil:
		return OK
	case errors.As(err, &coded):
		return coded.Code
	}
	return BadInput
}

// OverBudget is how many rows were not judged because the budget ran out.
func OverBudget(rows []v1alpha1.Report) int {
	n := 0
	for i := range rows {
		if rows[i].Reason == v1alpha1.RowBudgetExceeded {
			n++
		}
	}
	return n
}

// BudgetError says how many rows the budget did not reach for.
func BudgetError(missed, rows int) error {
	return fmt.Errorf("the budget ran out: %d of %d rows were not judged to their end; the report holds what was", missed, rows)
}
