package plan

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mcptest/mcptest-operator/api/v1alpha1"
	"github.com/mcptest/mcptest-operator/engine/preset"
	"github.com/mcptest/mcptest-operator/engine/rubric"
)

// ValidateRubric checks a rubric: all that admission checks in a cluster, and what only code can check: regular
// expressions, and whether any candidate could pass (S-10). path is where the spec stands.
func ValidateRubric(r *v1alpha1.RubricSpec, path *field.Path) field.ErrorList {
	v := &validator{}
	v.rubric(r, path, "set exactly one of text (one question), criteria (a weighted list), tree (yes/no questions) or preset (criteria beside it are added to the preset's)")
	return v.problems
}

func (v *validator) rubric(r *v1alpha1.RubricSpec, path *field.Path, exactlyOne string) {
	v.maxLength(path.Child("description"), r.Description, 1024)
	v.fraction(path.Child("threshold"), r.Threshold)
	v.oneOf(path.Child("aggregation"), string(r.Aggregation), v1alpha1.AggregationWeightedAverage, v1alpha1.AggregationMin, v1alpha1.AggregationWorst)
	v.oneOf(path.Child("requiredGate"), string(r.RequiredGate), v1alpha1.RequiredGateThreshold, v1alpha1.RequiredGateZero)
	v.scale(r.Scale, path.Child("scale"))
	switch forms := formsOf(r); len(forms) {
	case 0:
		v.add(field.Required(path, exactlyOne))
		return
	case 1:
	default:
		v.forbidden(path, strings.Join(forms, " and ")+" exclude each other: "+exactlyOne)
		return
	}
	switch rubric.Kind(r) {
	case v1alpha1.RubricKindText:
		v.maxLength(path.Child("text"), r.Text, 16384)
		if strings.TrimSpace(r.Text) == "" {
			v.invalid(path.Child("text"), r.Text, "text is blank; say what a good answer is")
		}
		v.criteriaOnly(r, path, "a text rubric takes no aggregation: it has one score; remove aggregation")
	case v1alpha1.RubricKindTree:
		v.criteriaOnly(r, path, "a tree takes no aggregation: its score is the score of the leaf it reaches; remove aggregation")
		v.tree(r, path.Child("tree"))
	case v1alpha1.RubricKindCriteria:
		v.preset(r, path)
		v.criteria(r, path.Child("criteria"))
	}
}

// preset checks that a preset is there, and that no criterion beside it has the name of one of its own (S-36).
func (v *validator) preset(r *v1alpha1.RubricSpec, path *field.Path) {
	if r.Preset == "" {
		return
	}
	p, err := preset.Find(r.Preset)
	if err != nil {
		v.invalid(path.Child("preset"), r.Preset, err.Error())
		return
	}
	for i := range r.Criteria {
		if p.Has(r.Criteria[i].Name) {
			v.invalid(path.Child("criteria").Index(i).Child("name"), r.Criteria[i].Name, fmt.Sprintf("the preset %s has a criterion of this name already; rename this one", p.Pinned()))
		}
	}
	v.maxItems(path.Child("criteria"), len(p.Criteria)+len(r.Criteria), maxCriteria)
}

// formsOf are the fields that say what a rubric asks; one of them should be set. Criteria beside a preset belong to it.
func formsOf(r *v1alpha1.RubricSpec) []string {
	var forms []string
	if r.Text != "" {
		forms = append(forms, "text")
	}
	switch {
	case r.Preset != "":
		forms = append(forms, "preset")
	case len(r.Criteria) > 0:
		forms = append(forms, "criteria")
	}
	if r.Tree != nil {
		forms = append(forms, "tree")
	}
	return forms
}

// criteriaOnly refuses what has a meaning for criteria only (S-18, S-23).
func (v *validator) criteriaOnly(r *v1alpha1.RubricSpec, path *field.Path, noAggregation string) {
	if r.Aggregation != "" {
		v.forbidden(path.Child("aggregation"), noAggregation)
	}
	if r.RequireEvidence {
		v.forbidden(path.Child("requireEvidence"), "requireEvidence works with criteria only; move the question into criteria, or remove requireEvidence")
	}
	if r.RequiredGate != "" {
		v.forbidden(path.Child("requiredGate"), "requiredGate works with criteria only; remove it")
	}
}

func (v *validator) scale(s *v1alpha1.Scale, path *field.Path) {
	if s == nil {
		return
	}
	kinds := 0
	for _, has := range []bool{s.Unit != nil, s.Likert != nil, s.Boolean != nil, s.Letter != nil} {
		if has {
			kinds++
		}
	}
	if kinds != 1 {
		v.invalid(path, fmt.Sprintf("%d scales", kinds), "set exactly one of unit, likert, boolean or letter, as in {likert: {min: 1, max: 5}}")
		return
	}
	if l := s.Likert; l != nil && (l.Min >= l.Max || l.Min < 0 || l.Max > 100) {
		v.invalid(path.Child("likert"), fmt.Sprintf("%d..%d", l.Min, l.Max), "likert.min must be below likert.max, both from 0 to 100, as in {min: 1, max: 5}")
	}
}

// maxCriteria is how many criteria a rubric has at most, those of its preset included.
const maxCriteria = 64

func (v *validator) criteria(r *v1alpha1.RubricSpec, path *field.Path) {
	v.maxItems(path, len(r.Criteria), maxCriteria)
	names, counts := make(map[string]bool), r.Preset != ""
	for i := range r.Criteria {
		c, at := &r.Criteria[i], path.Index(i)
		v.required(at.Child("name"), c.Name, "give the criterion a name; the report shows it")
		v.maxLength(at.Child("name"), c.Name, 128)
		v.unique(at.Child("name"), names, c.Name)
		v.required(at.Child("description"), c.Description, "say what the judge must look at")
		v.maxLength(at.Child("description"), c.Description, 8192)
		v.weight(at.Child("weight"), c.Weight)
		v.fraction(at.Child("threshold"), c.Threshold)
		counts = counts || c.Weight == nil || *c.Weight > 0
		v.when(c.When, at.Child("when"))
		v.anchors(c, at)
	}
	if !counts {
		v.invalid(path, "", "every weight is 0, so no score can be made; give at least one criterion a weight above 0")
	}
}

func (v *validator) when(w *v1alpha1.When, path *field.Path) {
	if w == nil {
		return
	}
	v.maxLength(path.Child("contains"), w.Contains, 1024)
	v.maxLength(path.Child("regex"), w.Regex, 1024)
	if (w.Contains != "") == (w.Regex != "") {
		v.invalid(path, "", "set exactly one of contains and regex")
		return
	}
	if _, err := regexp.Compile(w.Regex); err != nil {
		v.invalid(path.Child("regex"), w.Regex, err.Error()+"; write an RE2 expression, which has no lookaround and no backreferences")
	}
}

// anchors checks what is shown to the judge beside the description.
func (v *validator) anchors(c *v1alpha1.Criterion, path *field.Path) {
	v.maxItems(path.Child("examples"), len(c.Examples), 32)
	for i, e := range c.Examples {
		at := path.Child("examples").Index(i)
		v.fraction(at.Child("score"), &e.Score)
		v.required(at.Child("response"), e.Response, "write the answer that deserves this score")
		v.maxLength(at.Child("response"), e.Response, 8192)
	}
	if c.Indicators != nil {
		v.maxLength(path.Child("indicators", "good"), c.Indicators.Good, 4096)
		v.maxLength(path.Child("indicators", "bad"), c.Indicators.Bad, 4096)
		if c.Indicators.Good == "" && c.Indicators.Bad == "" {
			v.invalid(path.Child("indicators"), "", "describe good or bad work, or remove indicators")
		}
	}
	if c.ScoreRanges == nil {
		return
	}
	at := path.Child("scoreRanges")
	for key, text := range c.ScoreRanges {
		if n, err := strconv.Atoi(key); err != nil || n < 0 || n > 10 || strconv.Itoa(n) != key {
			v.invalid(at.Key(key), key, `the keys of scoreRanges are whole numbers from "0" to "10"`)
		}
		v.required(at.Key(key), string(text), "say what work deserves this score")
		v.maxLength(at.Key(key), string(text), 2048)
	}
	if _, ok := c.ScoreRanges["0"]; !ok {
		v.add(field.Required(at.Key("0"), `scoreRanges must say what a score of 0 means; add a key "0"`))
	}
}

func (v *validator) tree(r *v1alpha1.RubricSpec, path *field.Path) {
	if r.Tree.Ask == "" {
		v.add(field.Required(path.Child("ask"), "a tree starts with a question: set ask, ifYes and ifNo"))
		return
	}
	before := len(v.problems)
	v.node(r.Tree, path, 0)
	if best := rubric.BestScore(r); len(v.problems) == before && best < rubric.Threshold(r)-1e-9 {
		v.invalid(path, best, fmt.Sprintf("no candidate could pass: the best leaf scores %v and the threshold is %v; lower the threshold, or raise a leaf", best, rubric.Threshold(r)))
	}
}

func (v *validator) node(n *v1alpha1.TreeNode, path *field.Path, questions int) {
	if (n.Ask != "") == (n.Score != nil) {
		v.invalid(path, "", "a node is either a question (ask, ifYes, ifNo) or a leaf (score, reason)")
		return
	}
	if n.Ask == "" {
		v.fraction(path.Child("score"), n.Score)
		v.maxLength(path.Child("reason"), n.Reason, 2048)
		if n.IfYes != nil || n.IfNo != nil {
			v.forbidden(path, "a leaf ends the walk: remove ifYes and ifNo, or give the node a question in ask")
		}
		return
	}
	if strings.TrimSpace(n.Ask) == "" {
		v.add(field.Required(path.Child("ask"), "write the question"))
	}
	v.maxLength(path.Child("ask"), n.Ask, 8192)
	if n.Reason != "" {
		v.forbidden(path.Child("reason"), "reason belongs to a leaf; a question has ask, ifYes and ifNo")
	}
	if questions == v1alpha1.MaxTreeDepth {
		v.invalid(path, n.Ask, fmt.Sprintf("a tree is at most %d questions deep; split the rubric", v1alpha1.MaxTreeDepth))
		return
	}
	if n.IfYes == nil || n.IfNo == nil {
		v.add(field.Required(path, "a question needs both ifYes and ifNo (write ifYes and ifNo, not yes and no: YAML reads an unquoted yes as true)"))
		return
	}
	v.node(n.IfYes, path.Child("ifYes"), questions+1)
	v.node(n.IfNo, path.Child("ifNo"), questions+1)
}
