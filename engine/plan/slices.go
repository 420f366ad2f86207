package plan

// minCallsPerSlice is how many calls make a pod worth its start: at 16 calls at once and 2 s a call they take 12 s,
// where a pod takes 1 to 3 s to start.
const minCallsPerSlice = 100

// maxCallsPerSlice bounds what one index of a Job grades, so that no pod runs for hours.
const maxCallsPerSlice = 2000

// SliceCount is in how many slices a run is graded: as many as pods may run at once, but no more than make sense for
// the calls, and more when a slice would get too long. At least 1, at most one a row.
func SliceCount(calls []int32, parallelism int32) int32 {
	var total int64
	for _, c := range calls {
		total += int64(c)
	}
	worthwhile := max(1, total/minCallsPerSlice)
	n := max(min(worthwhile, int64(parallelism)), (total+maxCallsPerSlice-1)/maxCallsPerSlice)
	return int32(max(1, min(n, int64(len(calls)))))
}

// Slice is a range of rows: [From, To).
type Slice struct{ From, To int }

// Slices cuts rows with these projected calls into n consecutive slices of about the same number of calls.
// The same calls and n always make the same slices, so that a retried pod gets the slice of its predecessor.
// Each slice has at least one row while there are n rows.
func Slices(calls []int32, n int32) []Slice {
	// A row costs something even when it makes no call: it is fetched and reported.
	weight := func(i int) int64 { return int64(calls[i]) + 1 }
	var total int64
	for i := range calls {
		total += weight(i)
	}
	out := make([]Slice, 0, n)
	from, spent := 0, int64(0)
	for s := range int(n) {
		to := from
		goal := total * int64(s+1) / int64(n)
		rest := int(n) - s - 1 // slices that still need a row each
		for to < len(calls)-rest && (to == from || spent+weight(to) <= goal) {
			spent += weight(to)
			to++
		}
		if rest == 0 {
			to = len(calls)
		}
		out = append(out, Slice{From: from, To: to})
		from = to
	}
	return out
}
