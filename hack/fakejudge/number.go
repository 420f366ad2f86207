package fakejudge

import (
	"fmt"
	"math"
)

// interval is the range that a schema leaves to a number.
type interval struct {
	lo, hi         float64
	loOpen, hiOpen bool
}

// intervalOf reads the bounds of a schema. Without any, a number is in 0..1 and
// an integer in 0..10, the two ranges of a verdict's score (S-44).
func intervalOf(m map[string]any, integer bool) interval {
	lo, hasLo := m["minimum"].(float64)
	hi, hasHi := m["maximum"].(float64)
	xlo, hasXlo := m["exclusiveMinimum"].(float64)
	xhi, hasXhi := m["exclusiveMaximum"].(float64)
	v := interval{lo: lo, hi: hi}
	if hasXlo && (!hasLo || xlo >= lo) {
		v.lo, v.loOpen, hasLo = xlo, true, true
	}
	if hasXhi && (!hasHi || xhi <= hi) {
		v.hi, v.hiOpen, hasHi = xhi, true, true
	}
	width := 1.0
	if integer {
		width = 10
	}
	switch {
	case !hasLo && !hasHi:
		v.hi = width
	case !hasLo:
		v.lo = v.hi - width
	case !hasHi:
		v.hi = v.lo + width
	}
	if integer {
		v = v.integers()
	}
	return v
}

// integers shrinks the interval to the integers in it, borders closed.
func (v interval) integers() interval {
	lo, hi := math.Ceil(v.lo), math.Floor(v.hi)
	if v.loOpen && lo == v.lo {
		lo++
	}
	if v.hiOpen && hi == v.hi {
		hi--
	}
	return interval{lo: lo, hi: hi}
}

// number scales the score (or, for other properties, the hash) to the schema's range.
func (f *filler) number(m map[string]any, name string, integer bool) (any, error) {
	v := intervalOf(m, integer)
	if v.lo > v.hi || v.lo == v.hi && (v.loOpen || v.hiOpen) {
		return nil, fmt.Errorf("the schema of %q has no number between its bounds", name)
	}
	at := f.seed
	if name == "score" {
		at = f.d.score
		if f.d.fault == FaultOutOfRange {
			return outside(v, integer), nil
		}
	}
	x := v.lo + at*(v.hi-v.lo)
	if v.lo == 0 && v.hi == 1 {
		x = at // exactly what the rule says
	}
	switch {
	case integer:
		x = math.Min(math.Max(math.Round(x), v.lo), v.hi)
	default:
		if r := math.Round(x*1e6) / 1e6; r >= v.lo && r <= v.hi {
			x = r
		}
		if v.loOpen && x <= v.lo || v.hiOpen && x >= v.hi {
			x = v.lo + (v.hi-v.lo)/2
		}
	}
	return v.multiple(m, name, x)
}

// multiple moves x to a multipleOf inside the interval.
func (v interval) multiple(m map[string]any, name string, x float64) (any, error) {
	step, ok := m["multipleOf"].(float64)
	if !ok {
		return x, nil
	}
	if step > 0 {
		for _, y := range []float64{math.Round(x/step) * step, math.Floor(x/step) * step, math.Ceil(x/step) * step} {
			above := y > v.lo || y == v.lo && !v.loOpen
			below := y < v.hi || y == v.hi && !v.hiOpen
			if above && below {
				return y, nil
			}
		}
	}
	return nil, fmt.Errorf("the schema of %q has no multiple of %v between its bounds", name, step)
}

// outside is a score past the range: 8 for 0..1, 42 for 0..10.
func outside(v interval, integer bool) float64 {
	if integer {
		return v.hi + 32
	}
	return v.hi + 7
}
