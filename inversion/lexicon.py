"""Closed lists of words: function words of some languages, words of mood. Data only."""

from __future__ import annotations

FUNCTION_WORDS: dict[str, frozenset[str]] = {
    code: frozenset(text.split())
    for code, text in {
        "en": (
            "the a an and or but of to in on at for with by from as is are was were be been it its this that these those i you "
            "he she we they my your his her our their what which who how when where why not no do does did have has had will "
            "would can could should there here then than so if into about up out just now one let's we're it's that's don't i'm "
            "you're "
        ),
        "de": (
            "der die das und oder aber ein eine einen einem einer ist sind war waren nicht mit von zu im in auf für als auch es "
            "sie wir ihr ich du er den dem des dass wie was wer wo wenn dann noch nur nach bei aus um über werden wird hat haben "
            "kann "
        ),
        "fr": (
            "le la les un une des et ou mais de du à au aux en dans sur pour avec par est sont était ne pas que qui ce cette ces "
            "il elle nous vous ils je tu on se sa son ses leur plus comme tout fait être avoir "
        ),
        "es": (
            "el la los las un una unos y o pero de del a al en con por para es son era no que quien este esta estos se su sus lo "
            "le me te nos más como muy ya hay ser estar fue "
        ),
        "it": (
            "il lo la i gli le un una e o ma di del della a al alla in con per da è sono era non che chi questo questa si su suo "
            "sua come più anche essere stato "
        ),
        "pt": (
            "o a os as um uma e ou mas de do da dos em no na com por para é são era não que quem este esta se seu sua como mais "
            "muito já há ser foi "
        ),
        "nl": (
            "de het een en of maar van te in op aan voor met door uit is zijn was waren niet dat die dit deze ik je hij zij we "
            "wij jullie wat wie hoe als dan nog ook er naar bij om "
        ),
    }.items()
}
"""The commonest words of a language: enough to tell it from another."""

FILLERS = frozenset(
    (
        "am im ive id ill youre youve hes shes weve were theyre its thats theres heres lets cant wont dont doesnt didnt isnt "
        "arent wasnt me him them us mine yours any some all each every both few more most other such only own same too very "
        "s t now really actually just also because while during before after above below between again further once over "
        "under until against being having doing shall may might must well going go get got make makes made like thing things "
        "way want know see look say says said think okay ok right yes yeah oh um uh much many lot kind sort even still back "
        "down off through around let "
    ).split()
)
"""English words beyond the function words that say nothing of the subject."""
