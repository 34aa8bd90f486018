"""Our own graphics: template pack, text layout, local fonts, and the renderer that turns a fill into a clip."""
