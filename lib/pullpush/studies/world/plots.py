"""The figure of chapter 0 that no common one gives: a scene over time."""

from matplotlib.figure import Figure

from pullpush.data.clips import World
from pullpush.data.scenes.composer import seconds
from pullpush.data.scenes.scene import Scene
from pullpush.show.layout import finish, name_places, panels, signed
from pullpush.show.marks import bars
from pullpush.show.palette import SKY


def scene_timeline(world: World, scene: Scene) -> Figure:
    """A scene over time: a bar for each sound, with what captions may mention of it."""
    fig, (ax,) = panels(1, height=0.9 + 0.42 * len(scene.sounds), width=6.4)
    for row, sound in enumerate(scene.sounds):
        cuts = [other.onset for other in scene.sounds[row + 1 : row + 2] if scene.relation == "sequence"]
        end = min([sound.onset + seconds(world.bank, sound), scene.duration, *cuts])
        bars(ax, [row], [end - sound.onset], start=sound.onset, width=0.55, colour=SKY, upright=False)
        notes = [f"{signed(sound.semitones, '+d')} semitone{'s' * (abs(sound.semitones) > 1)}"] * bool(sound.semitones)
        notes += [f"{sound.repeats} times"] * (sound.repeats > 1) + ["far"] * sound.far
        ax.annotate(
            ", ".join(notes), (sound.onset, row), (4, 0), textcoords="offset points", va="center", fontsize="small"
        )
    name_places(ax, [world.bank.events[sound.event].name.replace("_", " ") for sound in scene.sounds])
    noise = "no noise" if scene.snr_db is None else f"noise {scene.snr_db:.0f} dB below"
    ax.set(xlabel="time (s)", xlim=(0, scene.duration), title=f"{scene.relation}, {noise}")
    return finish(fig)
