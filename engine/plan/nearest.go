package plan

// Nearest is the name that is most like a name that was not found; empty when none is like it.
func Nearest(name string, among []string) string {
	set := make(map[string]struct{}, len(among))
	for _, a := range among {
		set[a] = struct{}{}
	}
	return nearest(name, set)
}
