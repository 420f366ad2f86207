package convert

// Limits of one document.
const (
	// MaxNodes is how many values a document has at most, those that aliases repeat included.
	MaxNodes = 200_000
	// MaxKey is how many bytes a key has at most.
	MaxKey = 1024
	// MaxPath is up to how many bytes a field path is remembered; deeper fields are told by what is around them.
	MaxPath = 512
	// MaxNesting is how deep values are nested in each other at most.
	MaxNesting = 100
	// MaxProblems is how many problems of one document are told at most, and how many notes.
	MaxProblems = 100
	// MaxFileBytes bounds one file, and what the variables of a file make of its texts.
	MaxFileBytes = 16 << 20
)

// maxValueInMessage is how many characters of a value a message shows, and maxPathInMessage of a path.
const (
	maxValueInMessage = 60
	maxPathInMessage  = 200
)

// Clip shortens a value to what a message shows of it.
func Clip(s string) string { return clipTo(s, maxValueInMessage) }

// ClipPath shortens a field path to what a message shows of it.
func ClipPath(path string) string { return clipTo(path, maxPathInMessage) }

func clipTo(s string, n int) string {
	if len(s) <= n {
		return s
	}
	count := 0
	for i := range s {
		if count == n {
			return s[:i] + "…"
		}
		count++
	}
	return s
}
