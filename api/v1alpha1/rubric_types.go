package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Rubric says what a good answer is. An Eval grades a candidate with it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=rb,categories=mcptest
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.status.kind`
// +kubebuilder:printcolumn:name="Threshold",type=number,JSONPath=`.spec.threshold`
// +kubebuilder:printcolumn:name="Calls",type=integer,JSONPath=`.status.judgeCalls`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Rubric struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What a good answer is.
	// +required
	// +kubebuilder:validation:XValidation:rule="[has(self.text), has(self.criteria) && !has(self.preset), has(self.tree), has(self.preset)].filter(x, x).size() == 1",message="set exactly one of text (one question), criteria (a weighted list), tree (yes/no questions) or preset (criteria beside it are added to the preset's)"
	Spec RubricSpec `json:"spec"`

	// What the operator found out about this rubric.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status RubricStatus `json:"status,omitzero"`
}

// RubricList is a list of Rubrics.
//
// +kubebuilder:object:root=true
type RubricList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Rubric `json:"items"`
}

// RubricSpec is a rubric: exactly one of text, criteria, tree or preset, and how its score is made and gated.
// Criteria may stand beside a preset: they are added to the preset's.
//
// +kubebuilder:validation:XValidation:rule="!has(self.aggregation) || !has(self.tree)",message="a tree takes no aggregation: its score is the score of the leaf it reaches; remove aggregation"
// +kubebuilder:validation:XValidation:rule="!has(self.aggregation) || !has(self.text)",message="a text rubric takes no aggregation: it has one score; remove aggregation"
// +kubebuilder:validation:XValidation:rule="!has(self.requireEvidence) || !self.requireEvidence || !(has(self.text) || has(self.tree))",message="requireEvidence works with criteria only; move the question into criteria, or remove requireEvidence"
// +kubebuilder:validation:XValidation:rule="!has(self.requiredGate) || !(has(self.text) || has(self.tree))",message="requiredGate works with criteria only; remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.criteria) || has(self.preset) || self.criteria.exists(c, !has(c.weight) || c.weight > 0.0)",message="every weight is 0, so no score can be made; give at least one criterion a weight above 0"
type RubricSpec struct {
	// What this rubric is for, for the people who read it. Judges do not see it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Description string `json:"description,omitempty"`

	// The score, 0 to 1, that the eval must reach to pass. Default 0.7.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	Threshold *float64 `json:"threshold,omitempty"`

	// Strict asks for a perfect score: the threshold becomes 1. The thresholds of single criteria keep their values.
	// +optional
	Strict bool `json:"strict,omitempty"`

	// How the scores of the criteria become one score: weighted_average (default), or min (also called worst), where the lowest score counts.
	// +optional
	Aggregation Aggregation `json:"aggregation,omitempty"`

	// Every verdict must quote the part of the candidate that it rests on; the quote is checked. A verdict without it scores 0 and fails the eval.
	// +optional
	RequireEvidence bool `json:"requireEvidence,omitempty"`

	// When a required criterion without a threshold of its own fails the eval: below the rubric's threshold (threshold, the default), or only at score 0 (zero).
	// +optional
	RequiredGate RequiredGate `json:"requiredGate,omitempty"`

	// The units in which people are shown the score. Stored and compared scores stay in 0 to 1. Default unit.
	// +optional
	Scale *Scale `json:"scale,omitempty"`

	// A single question in free text; the judge's score is the score of the eval.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	// +kubebuilder:validation:XValidation:rule="self.trim().size() > 0",message="text is blank; say what a good answer is"
	Text string `json:"text,omitempty"`

	// Criteria that come with the operator, such as groundedness, or groundedness@1 for exactly that version of them. Criteria written here are added to them.
	// +optional
	Preset PresetName `json:"preset,omitempty"`

	// Named questions, each judged by a call of its own.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Criteria []Criterion `json:"criteria,omitempty"`

	// A tree of yes/no questions, at most 6 deep; the leaf that is reached is the score.
	// +optional
	Tree *TreeNode `json:"tree,omitempty"`
}

// PresetName names a set of criteria that comes with the operator, and perhaps its version (S-36).
//
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="self.matches('^(helpfulness|groundedness|safety|format-adherence|conciseness)(@[1-9][0-9]*)?$')",message="unknown preset; write helpfulness, groundedness, safety, format-adherence or conciseness, or one of them with its version, as in groundedness@1"
type PresetName string

// Aggregation says how the scores of criteria become one score (S-8, S-9).
//
// +kubebuilder:validation:Enum=weighted_average;min;worst
type Aggregation string

// The ways to aggregate; AggregationWorst is a synonym of AggregationMin.
const (
	AggregationWeightedAverage Aggregation = "weighted_average"
	AggregationMin             Aggregation = "min"
	AggregationWorst           Aggregation = "worst"
)

// RequiredGate says when a required criterion without a threshold of its own fails the eval (S-14).
//
// +kubebuilder:validation:Enum=threshold;zero
type RequiredGate string

// The gates of a required criterion.
const (
	RequiredGateThreshold RequiredGate = "threshold"
	RequiredGateZero      RequiredGate = "zero"
)

// Scale is the unit in which people are shown a score: exactly one of its members.
//
// +kubebuilder:validation:XValidation:rule="[has(self.unit), has(self.likert), has(self.boolean), has(self.letter)].filter(x, x).size() == 1",message="set exactly one of unit: {}, likert: {min, max}, boolean: {} or letter: {}"
type Scale struct {
	// The score as it is, such as 0.80. Write `unit: {}`.
	// +optional
	Unit *UnitScale `json:"unit,omitempty"`

	// A Likert band, such as 4.0/5.
	// +optional
	Likert *LikertScale `json:"likert,omitempty"`

	// "pass" or "fail". Write `boolean: {}`.
	// +optional
	Boolean *BooleanScale `json:"boolean,omitempty"`

	// A letter: A from 0.9, B from 0.8, C from 0.7, D from 0.6, else F. Write `letter: {}`.
	// +optional
	Letter *LetterScale `json:"letter,omitempty"`
}

// UnitScale shows the score as it is.
type UnitScale struct{}

// LikertScale maps 0..1 linearly to min..max.
//
// +kubebuilder:validation:XValidation:rule="self.min < self.max",message="likert.min must be below likert.max, as in {min: 1, max: 5}"
type LikertScale struct {
	// What score 0 is shown as.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Min int32 `json:"min"`
	// What score 1 is shown as.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Max int32 `json:"max"`
}

// BooleanScale shows "pass" or "fail".
type BooleanScale struct{}

// LetterScale shows a letter from A to F.
type LetterScale struct{}

// Criterion is one question of a rubric, judged by a call of its own (S-7).
//
// +kubebuilder:validation:XValidation:rule="!has(self.scoreRanges) || '0' in self.scoreRanges",message="scoreRanges must say what a score of 0 means; add a key \"0\""
// +kubebuilder:validation:XValidation:rule="self.name.trim().size() > 0 && self.description.trim().size() > 0",message="name and description must not be blank; say in description what the judge looks at"
type Criterion struct {
	// The name of the criterion, unique in its rubric.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name"`

	// What the judge is asked to look at. For a guard: what must not be there.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	Description string `json:"description"`

	// How much this criterion counts against the others. Default 1. At 0 it is judged and reported, and does not count.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Weight *float64 `json:"weight,omitempty"`

	// A required criterion fails the eval when it scores below its threshold, whatever the average is.
	// +optional
	Required bool `json:"required,omitempty"`

	// A guard describes what must not be there: its score is 1 minus how far the judge finds it present, and finding it fails the eval.
	// +optional
	Guard bool `json:"guard,omitempty"`

	// The score, 0 to 1, that this criterion itself must reach. With it the criterion is a gate even when it is neither required nor a guard. Default for a required or guard criterion: the threshold of the rubric.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	Threshold *float64 `json:"threshold,omitempty"`

	// The criterion applies only to candidates for which this holds; otherwise it is skipped and does not count. Decided without a judge.
	// +optional
	When *When `json:"when,omitempty"`

	// Answers with the score that a person would give them. They are shown to the judge, in this order, to calibrate it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Examples []Example `json:"examples,omitempty"`

	// Prose that tells good work from bad. Shown to the judge as a description, never as a scored example.
	// +optional
	Indicators *Indicators `json:"indicators,omitempty"`

	// What whole scores from 0 to 10 mean, as in {"0": "wrong", "5": "partly", "10": "right"}. The judge then gives a whole number from 0 to 10, and the score is that number divided by 10.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=11
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['0','1','2','3','4','5','6','7','8','9','10'])",message="the keys of scoreRanges are whole numbers from \"0\" to \"10\""
	ScoreRanges map[string]ScoreRange `json:"scoreRanges,omitempty"`
}

// ScoreRange describes the work that deserves a score (S-17).
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=2048
type ScoreRange string

// When is a condition on the text of the candidate, decided without a judge (S-11): exactly one of its members.
//
// +kubebuilder:validation:XValidation:rule="has(self.contains) != has(self.regex)",message="set exactly one of contains (a text) or regex (a regular expression)"
type When struct {
	// The candidate contains this text, upper and lower case told apart.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Contains string `json:"contains,omitempty"`

	// The candidate matches this regular expression (RE2 syntax).
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Regex string `json:"regex,omitempty"`
}

// Example is an answer with the score that a person would give it.
type Example struct {
	// The answer.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	Response string `json:"response"`
	// The score, 0 to 1, that it deserves.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	Score float64 `json:"score"`
}

// Indicators describe good and bad work in prose.
//
// +kubebuilder:validation:XValidation:rule="has(self.good) || has(self.bad)",message="say what good work looks like in good, what bad work looks like in bad, or both"
type Indicators struct {
	// What good work looks like.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Good string `json:"good,omitempty"`
	// What bad work looks like.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Bad string `json:"bad,omitempty"`
}

// TreeNode is a question with two ways on, or a leaf with a score (S-21).
//
// A Go type that holds itself cannot be written as a CRD schema: ifYes and ifNo are left open here, and
// hack/crdgen unrolls them, MaxTreeDepth questions deep, each node with this node's rules.
//
// The rule stands in the CRD 62 times for each tree: it is one rule, with few &&, which JSON writes in 12 bytes.
//
// +kubebuilder:validation:XValidation:rule="has(self.ask) ? self.ask.trim().size() > 0 && has(self.ifYes) && has(self.ifNo) && !(has(self.score) || has(self.reason)) : has(self.score) && !(has(self.ifYes) || has(self.ifNo))",message="a node is either a question (ask, ifYes and ifNo) or a leaf (score, and perhaps reason)"
type TreeNode struct {
	// A question that is answered yes or no. Yes is a judge's score of 0.5 or more.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	Ask string `json:"ask,omitempty"`

	// Where the walk goes on when the answer is yes.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	IfYes *TreeNode `json:"ifYes,omitempty"`

	// Where the walk goes on when the answer is no.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	IfNo *TreeNode `json:"ifNo,omitempty"`

	// The score, 0 to 1, of the leaf that ends the walk.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	Score *float64 `json:"score,omitempty"`

	// Why reaching this leaf means this score. Shown in the report.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Reason string `json:"reason,omitempty"`
}

// MaxTreeDepth is how many questions a walk through a tree can have at most.
const MaxTreeDepth = 6

// RubricStatus is what the operator found out about a Rubric.
type RubricStatus struct {
	// The generation of the spec that this status speaks of; -1 until it was looked at.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Identifies what is graded: two rubrics with the same digest grade alike.
	// +optional
	Digest string `json:"digest,omitempty"`

	// text, criteria or tree.
	// +optional
	Kind RubricKind `json:"kind,omitempty"`

	// How many judge calls one candidate costs with this rubric; for a tree, and for criteria with `when`, at most.
	// +optional
	JudgeCalls int32 `json:"judgeCalls,omitempty"`

	// Ready: the rubric is valid and can be used.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RubricKind says which of its three forms a rubric has.
//
// +kubebuilder:validation:Enum=text;criteria;tree
type RubricKind string

// The forms of a rubric.
const (
	RubricKindText     RubricKind = "text"
	RubricKindCriteria RubricKind = "criteria"
	RubricKindTree     RubricKind = "tree"
)
