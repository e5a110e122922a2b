// Texts of the view Look, by language. `sheet` has the texts of a query's sheet, which is English by default.
export const WORDS = {
  en: {
    seen: "This page shows grades of models, ranks and systems, so every label from this server is stored as not blind.", link: "Copy link", copied: "Link copied", themes: { auto: "System theme", light: "Light theme", dark: "Dark theme" }, grading: "Grade", run: "Run", search: "Search (/): words of the query, or an id", sort: "Order", tongue: "Language", kind: "Kind",
    sorts: { id: "by id", doubt: "most wrong pairs expected first", few: "fewest relevant passages first", holes: "most without a grade first" }, all: "all", questions: "Queries", count: (n, all) => (n === all ? `${all} queries` : `${n} of ${all} queries`),
    hint: "Choose a query. Keys: / searches, j and k open the next and the previous query, Escape returns to the list, ? shows these keys.", back: "All queries", earlier: "Previous", later: "Next", other: "Français",
    line: (each) => `${each.pool} passages, ${each.relevant} relevant${each.graded < each.pool ? `, ${each.pool - each.graded} without a grade` : ""}${each.doubt === null ? "" : `, ${each.doubt.toFixed(1)} wrong pairs expected`}`,
    offline: "The server does not answer.", refused: (why) => `Not shown: ${why}`, none: "No query matches.", sheet: null,
  },
  fr: {
    seen: "On voit ici les notes, les rangs et les systèmes : toute note donnée sur ce serveur est enregistrée comme non aveugle.", grading: "Noter", link: "Copier le lien", copied: "Lien copié", themes: { auto: "Thème du système", light: "Thème clair", dark: "Thème sombre" }, run: "Run", search: "Chercher (/) : mots de la question, ou identifiant", sort: "Ordre", tongue: "Langue", kind: "Type",
    sorts: { id: "par identifiant", doubt: "le plus de paires mal ordonnées d’abord", few: "le moins de bons passages d’abord", holes: "le plus de passages sans note d’abord" }, all: "toutes", questions: "Questions", count: (n, all) => (n === all ? `${all} questions` : `${n} questions sur ${all}`),
    hint: "Choisissez une question. Touches : / chercher, j et k suivante et précédente, Échap retour à la liste, ? ces touches.", back: "Toutes les questions", earlier: "Précédente", later: "Suivante", other: "English",
    line: (each) => `${each.pool} passages, ${each.relevant} bons${each.graded < each.pool ? `, ${each.pool - each.graded} sans note` : ""}${each.doubt === null ? "" : `, ${each.doubt.toFixed(1)} paires mal ordonnées attendues`}`,
    offline: "Le serveur ne répond pas.", refused: (why) => `Non montré : ${why}`, none: "Aucune question ne convient.",
    sheet: {
      order: "Ordre", later: (n) => `encore ${n} rangs`, pool: "Aussi dans le pool", systems: "Ce que les systèmes ont rendu", passage: "passage", grade: "note", none: "non jugé", missing: "sans note",
      rank: (n) => `rang ${n}`, plausible: (low, high) => `rangs plausibles ${low} à ${high}`, above: (share) => `${share} %`, locked: "acquis",
      columns: ["rang", "rangs plausibles", "note", "avant le suivant", "passage"],
      legend: "Le trait couvre les rangs plausibles à 95 %. « Avant le suivant » dit combien il est sûr qu’un passage soit meilleur que celui d’après ; « acquis » : hors de doute. Les chiffres encadrés sont des notes.",
      doubt: (n, top) => `${n} paires mal ordonnées attendues dans les ${top} premiers`, stopped: (why) => `fin du classement : ${why}`, unranked: "Rien n’est classé ; les passages sont dans l’ordre de leur rang fusionné.", labels: "Rien n’est classé ; les passages sont dans l’ordre de leur note.", hidden: (n) => `${n} autres passages du pool ne sont pas montrés ici.`, empty: "Aucun système n’a trouvé de passage.",
      rewrite: "recherché", language: "langue", kind: "type", answer: "réponse attendue", found: (n) => `${n} passages`, best: (n, top) => `${n} des ${top} premiers`, first: (n) => `ses ${n} premiers`,
      more: (n) => `… encore ${n} caractères`, by: "noté par", votes: "à partir de", why: "pourquoi", cut: "non classé", near: "quasi-doublon", twin: "quasi-doublon de", below: "placé à coup sûr avant", sources: "trouvé par", where: "endroit", score: "score", words: "personnes", cannot: "indécidable", decided: "a tranché", silent: "Le texte n’est pas montré ici.", unknown: "hors du pool : personne ne l’a regardé",
    },
  },
};
