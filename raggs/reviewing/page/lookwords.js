// Texts of the view Look, by language. `sheet` has the texts of a query's sheet, which is English by default.
export const WORDS = {
  en: {
    seen: "Annotators can see grades, ranks and systems here. So labels from this server do not count for checks of the judge.", link: "Copy link", copied: "Link copied", themes: { auto: "System theme", light: "Light theme", dark: "Dark theme" }, grading: "Grade", run: "Run", search: "Search (/): words of the query, or an id", sort: "Order", tongue: "Language", kind: "Kind",
    sorts: { id: "by id", doubt: "least certain order first", few: "fewest of grade 4 or 5 first", holes: "most without a grade first" }, all: "all", questions: "Queries", count: (n, all) => (n === all ? `${all} queries` : `${n} of ${all} queries`),
    hint: "Choose a query to see what each system returned, and the best order of its passages. Press j for the first one.", help: "Keys", keysTitle: "Keys", close: "Close",
    keys: [["j", "next query"], ["k", "previous query"], ["o", "open the next passage"], ["/", "search"], ["↑ ↓", "move in the list of queries"], ["Enter", "open the query, passage or system"], ["Esc", "return to the list"], ["?", "show the keys"]], back: "All queries", earlier: "Previous", later: "Next", other: "Français",
    line: (each) => `${each.pool} passages, ${each.relevant} of grade 4 or 5${each.graded < each.pool ? `, ${each.pool - each.graded} without a grade` : ""}${each.doubt === null ? "" : `, about ${each.doubt.toFixed(1)} pairs of passages in the wrong order`}`,
    offline: "The server does not answer.", refused: (why) => `Not shown: ${why}`, unknown: (id) => `This run has no query “${id}”. Choose one from the list.`, none: "No query matches.", sheet: null,
  },
  fr: {
    seen: "On voit ici les notes, les rangs et les systèmes. Les notes données sur ce serveur ne comptent donc pas pour le contrôle du juge.", grading: "Noter", link: "Copier le lien", copied: "Lien copié", themes: { auto: "Thème du système", light: "Thème clair", dark: "Thème sombre" }, run: "Run", search: "Chercher (/) : mots de la requête, ou identifiant", sort: "Ordre", tongue: "Langue", kind: "Type",
    sorts: { id: "par identifiant", doubt: "ordre le moins sûr d’abord", few: "le moins de notes 4 ou 5 d’abord", holes: "le plus de passages sans note d’abord" }, all: "toutes", questions: "Requêtes", count: (n, all) => (n === all ? `${all} requêtes` : `${n} requêtes sur ${all}`),
    hint: "Choisissez une requête : ce que chaque système a rendu, et le meilleur ordre de ses passages. La touche j ouvre la première.", help: "Touches", keysTitle: "Touches", close: "Fermer",
    keys: [["j", "requête suivante"], ["k", "requête précédente"], ["o", "ouvrir le passage suivant"], ["/", "chercher"], ["↑ ↓", "parcourir la liste"], ["Enter", "ouvrir la requête, le passage ou le système"], ["Esc", "revenir à la liste"], ["?", "montrer les touches"]], back: "Toutes les requêtes", earlier: "Précédente", later: "Suivante", other: "English",
    line: (each) => `${each.pool} passages, ${each.relevant} de note 4 ou 5${each.graded < each.pool ? `, ${each.pool - each.graded} sans note` : ""}${each.doubt === null ? "" : `, environ ${each.doubt.toFixed(1).replace(".", ",")} paires de passages dans le mauvais ordre`}`,
    offline: "Le serveur ne répond pas.", refused: (why) => `Non montré : ${why}`, unknown: (id) => `Ce run n’a pas de requête « ${id} ». Choisissez-en une dans la liste.`, none: "Aucune requête ne convient.",
    sheet: {
      order: "Meilleur ordre", later: (n) => `encore ${n} rangs`, pool: "Autres passages trouvés", systems: "Ce que les systèmes ont rendu", passage: "passage", grade: "note", none: "non jugé", missing: "sans note",
      rank: (n) => `rang ${n}`, plausible: (low, high) => `rangs possibles ${low} à ${high}`, above: (share) => `${share} %`, locked: "certain",
      columns: ["rang", "rangs possibles", "note", "meilleur que le suivant", "passage"],
      legend: "Le trait couvre les rangs possibles (à 95 %). « Meilleur que le suivant » : la probabilité que ce passage soit meilleur que celui d’après. Les chiffres encadrés sont des notes, 5 la meilleure.",
      doubt: (n, top) => `environ ${n.replace(".", ",")} paires des ${top} premiers sont dans le mauvais ordre`, stopped: (why) => `fin du classement : ${why}`, unranked: "Rien n’est classé ; les passages sont dans l’ordre de leur rang fusionné.", labels: "Rien n’est classé ; les passages sont dans l’ordre de leur note.", hidden: (n) => `${n} autres passages trouvés ne sont pas montrés ici.`, empty: "Aucun système n’a trouvé de passage.",
      rewrite: "recherché", language: "langue", kind: "type", answer: "réponse attendue", found: (n) => `${n} passages`, best: (n, top) => `dont ${n} des ${top} meilleurs`, strip: (n) => `Cases : notes des ${n} premiers passages, dans l’ordre du système ; la plus haute est la meilleure, · sans note.`, first: (n) => `ses ${n} premiers`,
      more: (n) => `… encore ${n} caractères`, by: "noté par", votes: "à partir de", why: "pourquoi", cut: "non classé", near: "quasi-doublon", twin: "quasi-doublon de", below: "placé à coup sûr avant", sources: "trouvé par", where: "endroit", score: "score", words: "personnes", cannot: "indécidable", decided: "a tranché", silent: "Le texte n’est pas montré ici.", unknown: "sans note : absent des passages à noter",
    },
  },
};
