"""Table rows of a storyboard (schemas.tables): projects without ``split``, words, sentences, shots, alignments, storyboards."""

from __future__ import annotations

from typing import Any

from schemas.canonical import canonical_text
from schemas.storyboard import Storyboard

Row = dict[str, Any]


def storyboard_rows(board: Storyboard) -> dict[str, list[Row]]:
    """Rows by table name. The ``projects`` row lacks the column ``split``, which the caller knows."""
    return {
        "projects": [_project(board)],
        "words": [
            {
                "project_id": board.project_id,
                "word_index": w.index,
                "text": w.text,
                "start_us": w.start_us,
                "end_us": w.end_us,
                "confidence": w.confidence,
                "timing": w.timing.value,
                "sentence_index": w.sentence,
                "shot_index": w.shot,
            }
            for w in board.words
        ],
        "sentences": [
            {
                "project_id": board.project_id,
                "sentence_index": s.index,
                "text": s.text,
                "start_us": s.start_us,
                "end_us": s.end_us,
                "language": s.language,
                "confidence": s.confidence,
                "shots": list(s.shots),
                "flags": list(s.flags),
            }
            for s in board.sentences
        ],
        "shots": [_shot(board, k) for k in range(len(board.shots))],
        "alignments": _alignments(board),
        "storyboards": [
            {
                "project_id": board.project_id,
                "storyboard_sha256": board.digest(),
                "schema_version": board.schema_version,
                "aspect_ratio": board.aspect_ratio,
                "segments": len(board.segments),
                "spotlights": sum(s.spotlight is not None for s in board.shots),
                "script": board.script,
            }
        ],
    }


def _project(board: Storyboard) -> Row:
    video = board.media.video
    return {
        "project_id": board.project_id,
        "uri": board.source.uri,
        "title": board.title,
        "language": board.language,
        "licence": board.source.licence or "unknown",
        "attribution": board.source.attribution,
        "source_sha256": board.media.sha256,
        "duration_us": board.shots[-1].shot.end_us,
        "width": video.display_width if video is not None else 0,
        "height": video.display_height if video is not None else 0,
        "shots": len(board.shots),
        "sentences": len(board.sentences),
        "words": len(board.words),
        "narration_share": board.admission.narration_share,
        "engines_json": canonical_text(dict(board.engines)),
    }


def _shot(board: Storyboard, index: int) -> Row:
    entry = board.shots[index]
    shot, seen = entry.shot, entry.evidence
    return {
        "project_id": board.project_id,
        "shot_index": shot.index,
        "start_us": shot.start_us,
        "end_us": shot.end_us,
        "start_frame": shot.start_frame,
        "end_frame": shot.end_frame,
        "transition_in": shot.transition_in.value,
        "cut_confidence": shot.cut_confidence,
        "has_narration": shot.has_narration,
        "motion": seen.motion,
        "luma": seen.luma,
        "text_lines": [b.text for b in seen.text],
        "caption": seen.caption,
        "key_frame_sha256": seen.key_frames[0].sha256 if seen.key_frames else "",
        "spotlight": entry.spotlight.kind.value if entry.spotlight is not None else None,
    }


def _alignments(board: Storyboard) -> list[Row]:
    out: list[Row] = []
    for sentence in board.sentences:
        words = board.words[sentence.first_word : sentence.end_word]
        for index in sentence.shots:
            shot = board.shots[index].shot
            own = [w for w in words if w.shot == index]
            out.append(
                {
                    "project_id": board.project_id,
                    "sentence_index": sentence.index,
                    "shot_index": index,
                    "overlap_us": sum(max(0, min(w.end_us, shot.end_us) - max(w.start_us, shot.start_us)) for w in own),
                    "words": len(own),
                    "confidence": shot.alignment_confidence,
                }
            )
    return out
